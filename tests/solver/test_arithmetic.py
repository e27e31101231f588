"""Tests every finding of arithmetic with its numbers, on chains worked out by hand."""

from typing import Any

import pytest

from oracle.small import FREE, Json, equal_layers, small_problem
from partita.models.answer import Finding, Infeasibility
from partita.models.errors import NotSupportedYet
from partita.models.problem import Problem
from partita.solver.planner import plan_problem


def why_not(problem: Problem) -> Infeasibility:
    """Plan a problem that has no plan and give the reason."""
    answer = plan_problem(problem)
    assert answer.status == "infeasible"
    assert answer.candidates == ()
    assert answer.infeasibility is not None
    return answer.infeasibility


def only_finding(problem: Problem) -> Finding:
    """Give the one finding of a problem that has no plan."""
    reason = why_not(problem)
    (finding,) = reason.findings
    assert reason.limits_in_force == (finding.limit,)
    return finding


def weighing(**sizes: int) -> dict[str, Json]:
    """Give layers of 1 s with weights of so many bytes."""
    return {name: {"forward_s": 1.0, "weight_bytes": size} for name, size in sizes.items()}


def numbers(finding: Finding) -> tuple[Any, ...]:
    """Give the numbers of a finding."""
    return finding.needed, finding.available, finding.short_by, finding.unit


def test_a_layer_that_is_too_large() -> None:
    """Tests 150 bytes of weights on devices of 100."""
    finding = only_finding(small_problem(weighing(a=60, b=150), memory=100))
    assert numbers(finding) == (150, 100, 50, "bytes")
    assert (finding.limit, finding.layer, finding.device) == ("memory_bytes of gpu", "b", "node0:0")
    assert finding.message == "layer 'b': needs 150 bytes, node0:0 allows 100 bytes: short by 50 bytes"


@pytest.mark.parametrize(
    ("memory", "limit", "change"),
    [
        (100, None, "take devices with memory_bytes of at least 150 bytes (gpu has 100 bytes)"),
        (200, 100, "raise limits.peak_memory_bytes to at least 150 bytes"),
        (
            100,
            100,
            "raise limits.peak_memory_bytes to at least 150 bytes and take devices with memory_bytes of at least 150 ",
        ),
        (100, 160, "take devices with memory_bytes of at least 150 bytes (gpu has 100 bytes)"),
        (200, 1, "raise limits.peak_memory_bytes to at least 150 bytes"),
    ],
)
def test_what_would_do_for_a_layer_that_is_too_large(memory: int, limit: int | None, change: str) -> None:
    """Tests that the change named is enough for the largest layer, with the reserve, and a byte less is not."""
    limits = {} if limit is None else {"peak_memory_bytes": limit}

    def problem(memory: int, limits: Json) -> Problem:
        return small_problem(weighing(a=120, b=145), memory=memory, reserve=5, limits=limits)

    named = why_not(problem(memory, limits)).smallest_change
    assert named is not None and named.startswith(change)
    assert plan_problem(problem(max(memory, 150), {"peak_memory_bytes": 150})).status == "optimal"
    assert why_not(problem(max(memory, 150), {"peak_memory_bytes": 149})).findings


def test_everything_that_a_layer_needs() -> None:
    """Tests 20 of weights, 20 of gradients, 40 of state, 1 microbatch of 30, 7 of workspace, 3 in reserve: 120."""
    layer = {"forward_s": 1.0, "weight_bytes": 20, "activation_bytes": 30, "workspace_bytes": 7}
    problem = small_problem(
        {"a": layer, "b": {"forward_s": 1.0}},
        memory=119,
        reserve=3,
        schedule="1f1b",
        num_microbatches=4,
        num_stages=2,
        optimizer="adam",
    )
    finding = only_finding(problem)
    assert numbers(finding) == (120, 119, 1, "bytes")
    assert "3 bytes of them reserved" in finding.message


def test_a_group_that_is_too_large() -> None:
    """Tests two layers that must share a stage, by 60 and 70 bytes and a limit of 110 on devices of 200."""
    problem = small_problem(
        weighing(a=60, b=70, c=1),
        memory=200,
        constraints={"together": [["a", "b"]]},
        limits={"peak_memory_bytes": 110},
    )
    finding = only_finding(problem)
    assert numbers(finding) == (130, 110, 20, "bytes")
    assert (finding.limit, finding.layer) == ("limits.peak_memory_bytes", "a")
    assert "2 layers that must share a stage" in finding.message


def test_named_weights_and_buffers_of_a_layer() -> None:
    """Tests that what a layer holds together with others counts as well: 10 + 50 + 45 on devices of 100."""
    model = {
        "weights": [{"name": "w", "bytes": 50, "layers": ["a", "c"]}],
        "buffers": [{"name": "v", "bytes": 45, "layers": ["a"]}],
    }
    finding = only_finding(small_problem(weighing(a=10, b=0, c=0), memory=100, model=model))
    assert (finding.layer, numbers(finding)) == ("a", (105, 100, 5, "bytes"))


def test_too_much_in_all() -> None:
    """Tests four layers of 60 bytes on two devices of 100: short by 40, and three stages would have room."""
    reason = why_not(small_problem(weighing(a=60, b=60, c=60, d=60), memory=100))
    (finding,) = reason.findings
    assert numbers(finding) == (240, 200, 40, "bytes")
    assert reason.smallest_change is not None
    assert reason.smallest_change.startswith("at least 3 devices of this size, in 3 stages")


@pytest.mark.parametrize(
    ("layers", "change"),
    [
        (4, "take devices with memory_bytes of at least 160 bytes (gpu has 100 bytes); or more ranks with other "
            "microbatches: interleaved_1f1b on 2 ranks runs rounds of equal size, of at least 2 microbatches: 7 do not "
            "divide into 3 rounds; the nearest numbers that work are 6 and 8"),
        (8, "at least 4 devices of this size, in 4 ranks"),
    ],
)  # fmt: skip
def test_microbatches_that_leave_one_rank(layers: int, change: str) -> None:
    """Tests seven microbatches, which run on one rank or on four and more, where three devices are there."""
    sizes = dict.fromkeys("abcdefgh"[:layers], 160 // layers)
    given: dict[str, Any] = {"schedule": "interleaved_1f1b", "num_microbatches": 7, "devices": 3}
    reason = why_not(small_problem(weighing(**sizes), memory=100, **given))
    (finding,) = reason.findings
    assert finding.message == "all layers together need 160 bytes, 1 rank of 100 bytes has 100 bytes: short by 60 bytes"
    assert reason.smallest_change == change + " (a bound by total memory)"


@pytest.mark.parametrize(
    ("sizes", "memory", "limit", "change"),
    [
        ({"a": 60, "b": 60, "c": 60, "d": 60}, 200, 100, "raise limits.peak_memory_bytes to at least 120 bytes"),
        ({"a": 60, "b": 60, "c": 60, "d": 60}, 110, 100, "at least 3 devices of this size, in 3 stages"),
        ({"a": 5, "b": 5}, 70, None, "take devices with memory_bytes of at least 75 bytes (gpu has 70 bytes)"),
    ],
)
def test_what_would_do_for_too_much_in_all(sizes: dict[str, int], memory: int, limit: int | None, change: str) -> None:
    """Tests two devices: the limit, more devices, or larger ones where there are no layers for more.

    Two layers save one activation of 70 bytes, which is kept for two microbatches.
    """
    model = {"shared_activations": [{"bytes": 70, "layers": ["a", "b"]}]} if len(sizes) == 2 else {}
    problem = small_problem(
        weighing(**sizes),
        memory=memory,
        limits={} if limit is None else {"peak_memory_bytes": limit},
        model=model,
        schedule="gpipe",
        num_microbatches=2,
    )
    assert why_not(problem).smallest_change == f"{change} (a bound by total memory)"


def test_shared_weights_count_once_in_all() -> None:
    """Tests 2 * 60 and a shared 90 on two devices of 104, 4 of them reserved: 210 of 200."""
    model = {"weights": [{"name": "w", "bytes": 40, "layers": ["a"]}, {"name": "v", "bytes": 90, "layers": ["c"]}]}
    problem = small_problem(weighing(a=30, b=50, c=0), memory=104, reserve=4, model=model)
    assert numbers(only_finding(problem)) == (210, 200, 10, "bytes")


def test_a_limit_on_the_iteration() -> None:
    """Tests T >= 2 * total + (m - p - 1) * load = 2 * 6 + 3 for two layers of 1 + 2 s, m = 4, p = 2."""
    layers = equal_layers("ab", forward_s=1.0, backward_s=2.0)
    problem = small_problem(layers, schedule="1f1b", num_microbatches=4, limits={"iteration_time_s": 10.0})
    finding = only_finding(problem)
    assert finding.limit == "limits.iteration_time_s"
    assert finding.needed == pytest.approx(15.0, rel=1e-8)
    assert (finding.available, finding.unit) == (10.0, "s")
    assert finding.short_by == pytest.approx(5.0, rel=1e-7)


def test_a_limit_on_the_bottleneck() -> None:
    """Tests that the longest layer alone needs 3 s where 2 s are allowed."""
    layers = {"a": {"forward_s": 1.0}, "b": {"forward_s": 3.0}, "c": {"forward_s": 1.0}}
    reason = why_not(small_problem(layers, devices=3, limits={"bottleneck_time_s": 2.0}))
    (finding,) = reason.findings
    assert numbers(finding) == (pytest.approx(3.0), 2.0, pytest.approx(1.0), "s")
    assert finding.limit == "limits.bottleneck_time_s"
    assert reason.smallest_change == "raise limits.bottleneck_time_s to at least 3"


def test_too_few_groups() -> None:
    """Tests three stages for two groups."""
    problem = small_problem("abc", devices=3, num_stages=3, constraints={"together": [["a", "b"]]})
    reason = why_not(problem)
    (finding,) = reason.findings
    assert (finding.limit, finding.needed, finding.available) == ("training.num_stages", 3, 2)
    assert "leave 2 groups of layers" in finding.message
    assert reason.smallest_change == "num_stages of at most 2"


def test_too_few_slots() -> None:
    """Tests three stages of two devices on two nodes of three devices: one stage fits on each."""
    nodes = [{"name": name, "device": "gpu", "count": 3, "fabric": FREE, "uplink": FREE} for name in "uv"]
    reason = why_not(small_problem("abc", nodes=nodes, num_stages=3, tensor_parallel=2))
    (finding,) = reason.findings
    assert (finding.needed, finding.available) == (3, 2)
    assert "the nodes have room for 2 ranks" in finding.message


def test_pins_against_the_order() -> None:
    """Tests that b behind a is pinned before it, past a layer without a pin."""
    problem = small_problem("axb", devices=3, num_stages=2, constraints={"pins": {"a": 1, "b": 0}})
    finding = only_finding(problem)
    assert (finding.limit, finding.layer, finding.stage) == ("constraints.pins", "b", 0)
    assert finding.message == "'a' is pinned to stage 1 but comes before 'b', which is pinned to stage 0"


@pytest.mark.parametrize("by", ["cut_after", "buffer"])
def test_pins_that_tear_layers_apart(by: str) -> None:
    """Tests the chain x, a, b, c: a and b share a stage by what is asked, but are pinned to 0 and 1."""
    buffer = {"name": "cache", "bytes": 1, "layers": ["a", "b"], "mutated": True}
    problem = small_problem(
        "xabc",
        num_stages=2,
        model={"buffers": [buffer]} if by == "buffer" else {},
        constraints={"pins": {"a": 0, "b": 1}} | ({"cut_after": ["x", "b"]} if by == "cut_after" else {}),
    )
    finding = only_finding(problem)
    assert finding.limit == "constraints.pins"
    assert "'a'" in finding.message and "'b'" in finding.message
    assert "stages 0 and 1" in finding.message


def test_a_pin_out_of_reach() -> None:
    """Tests that the first layer of a chain is on stage 0, and the last on the last stage."""
    for name, stage, where in (("a", 1, 0), ("d", 0, 1)):
        problem = small_problem("abcd", num_stages=2, constraints={"pins": {name: stage}})
        finding = only_finding(problem)
        assert (finding.limit, finding.layer, finding.stage) == ("constraints.pins", name, stage)
        assert f"must be on stage {where}" in finding.message


def test_a_pin_between_the_numbers_of_stages_allowed() -> None:
    """Tests that no reason calls a stage possible to which the layer is pinned in vain: 0 of 1 or 4 of 5, not 2."""
    problem = small_problem("abcdef", devices=6, num_stages=[1, 5], constraints={"pins": {"f": 2}})
    reason = why_not(problem)
    assert "0 to 4" not in reason.model_dump_json()


def test_limits_that_only_together_leave_no_plan() -> None:
    """Tests layers of 60, 60 and 50 bytes on two devices of 105: each limit could be kept, and all are named."""
    problem = small_problem(
        weighing(a=60, b=60, c=50),
        memory=105,
        limits={"bottleneck_time_s": 5.0},
        constraints={"apart": [["a", "b"]], "cut_after": ["a", "b", "c"]},
    )
    reason = why_not(problem)
    assert reason.findings == ()
    assert reason.limits_in_force == (
        "memory_bytes of gpu (105 bytes on each device)",
        "training.num_stages (1 to 2)",
        "limits.bottleneck_time_s (5 s)",
        "constraints.apart",
        "constraints.cut_after",
    )


@pytest.mark.parametrize(
    ("limits", "short", "change"),
    [
        ({"microbatches_per_second": 0.5}, "1 s", "lower limits.microbatches_per_second to at most 0.333333"),
        ({"tokens_per_second": 1.0}, "4 s", "lower limits.tokens_per_second to at most 0.2"),
        ({"tokens_per_second": 3 / 7}, "2.66667 s", "lower limits.tokens_per_second to at most 0.2"),
        ({"num_devices": 2}, "1 device", "raise limits.num_devices to at least 3"),
    ],
)
def test_limits_on_rates_and_devices(limits: dict[str, float], short: str, change: str) -> None:
    """Tests 3 s for the longest layer, 5 s for one token, and three stages, where less is allowed."""
    layers = {"a": {"forward_s": 1.0}, "b": {"forward_s": 3.0}, "c": {"forward_s": 1.0}}
    reason = why_not(small_problem(layers, devices=3, num_stages=3, limits=limits))
    assert reason.findings[0].limit == f"limits.{next(iter(limits))}"
    assert reason.findings[0].message.endswith(f"short by {short}")
    assert reason.smallest_change == change


def test_a_limit_that_is_written_is_kept() -> None:
    """Tests that the least time is written with few digits, and rounded up."""
    layers = {name: {"forward_s": 1 / 7} for name in "ab"}
    reason = why_not(small_problem(layers, devices=1, limits={"iteration_time_s": 0.1}))
    assert reason.smallest_change == "raise limits.iteration_time_s to at least 0.285715"


def test_a_bubble_that_is_a_ratio() -> None:
    """Tests that a limit on the bubble is refused where the busy time depends on the plan."""
    problem = small_problem("ab", communication="blocking", limits={"bubble_fraction": 0.5})
    with pytest.raises(NotSupportedYet, match=r"/limits/bubble_fraction: .* limit iteration_time_s instead"):
        plan_problem(problem)
