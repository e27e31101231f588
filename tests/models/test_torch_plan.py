"""Plans for torch.distributed as they are read."""

from typing import Any

import pytest

from partita.models.errors import InvalidInput
from partita.models.writers.torch_plan import read_torch

PLAN = {
    "schedule": "1f1b",
    "num_microbatches": 2,
    "devices": ["a", "b"],
    "groups": [[1, 0]],
    "stage_to_rank": [0, 1],
    "stages": [["embedding", "block"], ["head"]],
    "recompute": [{"block": "full"}, {}],
    "orders": ["0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1"],
}


def test_a_plan_that_can_run_is_read() -> None:
    """Tests orders and devices of a plan as it is written."""
    plan = read_torch(PLAN)
    assert [str(each) for each in plan.actions[1]] == ["1F0", "1B0", "1F1", "1B1"]
    assert [stage.devices for stage in plan.given().stages or ()] == [("b",), ("a",)]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"num_microbatches": 3}, "/orders: the orders run 2 microbatches; write 2 as num_microbatches, not 3"),
        ({"orders": ["0F0,0F1,0B0", "1F0,1B0,1F1,1B1"]}, "/orders/0: 0B1 is missing; add it"),
        ({"orders": ["0F0,0B0,0F1,0B1", "1F1,1B1,1F0,1B0"]}, "/orders: deadlock: rank 0 waits at 0B0 for 1B0"),
        ({"orders": ["forward", "1F0"]}, "/orders: 'forward' in row 1, cell 1 is no action"),
        ({"stage_to_rank": [1, 0]}, "/stage_to_rank: the orders run the stages on ranks [0, 1]; write these"),
        ({"stages": [["embedding", "block", "head"]]}, "/stages: the orders run 2 stages; give an item for each"),
        ({"recompute": [{"head": "full"}, {}]}, "/recompute/0/head: stage 0 has no layer of this name"),
        ({"groups": [[0]]}, "/groups: the orders have 2 ranks; name so many in every group"),
        ({"groups": [[0, 0]]}, "/groups: a rank stands twice, or is none of the 2 that have a device"),
        ({"groups": [[0, 2]]}, "/groups: a rank stands twice, or is none of the 2 that have a device"),
    ],
)
def test_a_plan_that_cannot_run_is_refused(changes: dict[str, Any], fault: str) -> None:
    """Tests that a plan which was changed by hand says what is wrong with it, before any rank waits for another."""
    with pytest.raises(InvalidInput) as caught:
        read_torch(PLAN | changes)
    assert str(caught.value).startswith(fault)
