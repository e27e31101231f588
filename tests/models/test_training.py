"""Tests of schedules, custom orders and optimizers."""

from typing import Any

import pytest

from partita.models.choices import TrainingChoice
from partita.models.document import read_json, validate
from partita.models.training import OPTIMIZERS, Training

ONE_F_ONE_B = [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]]


def training(schedule: object = "1f1b", **fields: object) -> dict[str, object]:
    """Give two microbatches."""
    return {"schedule": schedule, "num_microbatches": 2, **fields}


def custom(*orders: list[str]) -> dict[str, object]:
    """Give a custom schedule."""
    return {"kind": "custom", "orders": list(orders)}


@pytest.mark.parametrize(
    ("schedule", "chunks", "trains"),
    [
        ("forward_only", 1, False),
        ("1f1b", 1, True),
        ("interleaved_1f1b", 2, True),
        ({"kind": "interleaved_1f1b", "chunks_per_rank": 4}, 4, True),
        ("zb_v", 2, True),
        (custom(*ONE_F_ONE_B), 1, True),
        (custom(["0F0", "1F0", "0F1", "1F1"]), 2, False),
    ],
)
def test_schedules_know_their_chunks(schedule: object, chunks: int, trains: bool) -> None:
    """Tests stages per rank, and whether there is a backward pass."""
    (read,) = validate(Training, training(schedule)).schedules
    assert (read.chunks, read.trains) == (chunks, trains)


def test_a_name_is_short_for_an_object() -> None:
    """Tests that both ways of writing a schedule, and an action, are one."""
    assert validate(Training, training("gpipe")) == validate(Training, training({"kind": "gpipe"}))
    spelled = [[{"kind": "F", "stage": 0, "microbatch": 0}, {"kind": "F", "stage": 0, "microbatch": 1}]]
    short = validate(Training, training(custom(["0F0", "0F1"])))
    assert short == validate(Training, training({"kind": "custom", "orders": spelled}))


@pytest.mark.parametrize(
    ("schedule", "pointer", "detail"),
    [
        ({"kind": "custom"}, "/schedule/orders", "needs its orders"),
        ("custom", "/schedule", "'orders'"),
        ({"kind": "1f1b", "orders": [["0F0"]]}, "/schedule/orders", "belong to the kind 'custom'"),
        ({"kind": "1f1b", "chunks_per_rank": 2}, "/schedule/chunks_per_rank", "one stage on every rank"),
        ({"kind": "zb_v", "chunks_per_rank": 3}, "/schedule/chunks_per_rank", "two stages on every rank"),
        ({**custom(["0F0", "0F1"]), "chunks_per_rank": 1}, "/schedule/chunks_per_rank", "leave it out"),
        (custom(["0F0", "0X1"]), "/schedule/orders/0/1", "such as '2F0'"),
        (custom(["0F0", "0F1", "0F2"]), "/schedule/orders", "run 3 microbatches; write 3"),
        (custom(["0F0", "0F0", "0F1"]), "/schedule/orders/0/1", "twice"),
        (custom(["0F0", "0F1"], ["0F0"]), "/schedule/orders/1/0", "already runs on rank 0"),
        (custom(["0F0", "0F1"], ["2F0", "2F1"]), "/schedule/orders", "no rank runs stage 1"),
        (custom(["0F0"]), "/schedule/orders", "run 1 microbatches; write 1"),
        (custom(["0F0", "1F0", "1F1"]), "/schedule/orders/0", "0F1 is missing"),
        (custom(["0F0", "0F1", "0B0"]), "/schedule/orders/0", "0B1 is missing"),
        (custom(["0F0", "0F1", "0B0", "0I1"]), "/schedule/orders/0", "0W1 is missing"),
        (custom(["0B0", "0F0", "0F1"]), "/schedule/orders/0/0", "0F0 must come before"),
        (custom(["0F0", "0W0", "0F1"]), "/schedule/orders/0/1", "0I0 must come before"),
        (custom(["0F0", "0B0", "0I0", "0F1"]), "/schedule/orders/0/2", "not both"),
        (custom([], ["0F0", "0F1"]), "/schedule/orders/0", "without actions"),
    ],
)
def test_schedules_that_make_no_sense_are_refused(refused: Any, schedule: object, pointer: str, detail: str) -> None:
    """Tests every rule on schedules and orders."""
    assert detail in refused(training(schedule), Training)[pointer].detail


def test_the_orders_say_how_many_stages_there_are(refused: Any) -> None:
    """Tests that another number of stages is refused."""
    assert validate(Training, training(custom(*ONE_F_ONE_B), num_stages=2)).num_stages == 2
    assert "/num_stages" in refused(training(custom(*ONE_F_ONE_B), num_stages=[1, 2]), Training)


def test_split_backward_passes_are_allowed() -> None:
    """Tests orders with I and W."""
    order = ["0F0", "0I0", "0F1", "0W0", "0I1", "0W1"]
    assert validate(Training, training(custom(order))).trains


def test_named_optimizers_have_the_factors_of_the_field() -> None:
    """Tests bytes per parameter: 18 for mixed precision (2 of weights), 16 for plain Adam (4 of weights)."""
    mixed, plain = OPTIMIZERS["adam_mixed"], OPTIMIZERS["adam"]
    assert 2 * (1 + mixed.gradient_bytes_per_weight_byte + mixed.state_bytes_per_weight_byte) == 18
    assert 4 * (1 + plain.gradient_bytes_per_weight_byte + plain.state_bytes_per_weight_byte) == 16


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        (training("forward_only"), 0.0),  # nothing is trained
        (training("1f1b"), 6.0),  # the default of training
        (training("1f1b", optimizer=None), 6.0),
        (training("forward_only", optimizer="adam"), 2.0),  # as asked
        (training(optimizer={"gradient_bytes_per_weight_byte": 1, "state_bytes_per_weight_byte": 3}), 3.0),
    ],
)
def test_the_optimizer_depends_on_what_is_asked(fields: object, state: float) -> None:
    """Tests defaults, names and factors."""
    assert validate(Training, fields).optimizer_factors().state_bytes_per_weight_byte == state


def test_schedules_may_be_compared() -> None:
    """Tests that both forms give a tuple, that items are names or objects, and what is read back."""
    one = validate(Training, training("zb_v"))
    assert [schedule.kind for schedule in one.schedules] == ["zb_v"]
    fields = training(["1f1b", {"kind": "interleaved_1f1b", "chunks_per_rank": 4}, custom(*ONE_F_ONE_B)])
    several = validate(Training, fields)
    assert [(schedule.kind, schedule.chunks) for schedule in several.schedules] == [
        ("1f1b", 1),
        ("interleaved_1f1b", 4),
        ("custom", 1),
    ]
    assert validate(Training, read_json(several.model_dump_json())) == several
    assert [schedule.stages for schedule in several.schedules] == [None, None, 2]


@pytest.mark.parametrize("listed", [["gpipe", "1f1b"], ["gpipe"]])
def test_training_by_one_of_its_schedules_is_as_if_it_stood_alone(listed: list[str]) -> None:
    """Tests that all else stays."""
    several = validate(Training, training(listed, microbatch_size=3))
    chosen = TrainingChoice(several.schedules[0], 1, 1, 1, several.microbatches, 3)
    alone = validate(Training, training("gpipe", microbatch_size=3, replicas_per_node=1))
    assert several.with_choice(chosen) == alone


@pytest.mark.parametrize(
    ("schedules", "pointer", "detail"),
    [
        ([], "/schedule", "at least 1"),
        (["1f1b"] * 17, "/schedule", "17 schedules are given; at most 16"),
        (["1f1b", "zb_v", "1f1b"], "/schedule/2", "the same schedule as number 0 (1f1b); list it once"),
        (
            ["looped_bfs", {"kind": "looped_bfs", "chunks_per_rank": 2}],
            "/schedule/1",
            "the same schedule as number 0 (looped_bfs)",
        ),
        ([custom(*ONE_F_ONE_B), custom(*ONE_F_ONE_B)], "/schedule/1", "the same schedule as number 0 (custom)"),
        (["1f1b", "forward_only"], "/schedule/1", "forward_only has no backward pass, but 1f1b has backward passes"),
        ([custom(["0F0", "0F1"]), "gpipe"], "/schedule/1", "do not do the same work"),
        (["1f1b", "2f2b"], "/schedule/1", "unknown schedule; known are forward_only"),
        (["1f1b", ["gpipe"]], "/schedule/1", "expected the name of a schedule"),
        (["1f1b", {"kind": "zb_v", "chunks_per_rank": 3}], "/schedule/1/chunks_per_rank", "two stages"),
        (["1f1b", custom(["0F0", "0B0"])], "/schedule/1/orders", "run 1 microbatches; write 1"),
        (["1f1b", custom(["0B0", "0F0", "0F1", "0B1"])], "/schedule/1/orders/0/0", "0F0 must come before"),
        (["1f1b", {"kind": "custom", "orders": "0F0,0F1,0SEND_F0"}], "/schedule/1/orders", "compute-only"),
        (["1f1b", {"kind": "custom", "order": "0F0"}], "/schedule/1/order", "did you mean 'orders'?"),
    ],
)
def test_lists_of_schedules_that_make_no_sense_are_refused(
    refused: Any, schedules: object, pointer: str, detail: str
) -> None:
    """Tests that faults point into the list."""
    assert detail in refused(training(schedules), Training)[pointer].detail


def test_listed_orders_say_how_many_stages_there_are(refused: Any) -> None:
    """Tests that the fault points at the orders: the number may be right for the other schedules."""
    faults = refused(training(["1f1b", custom(*ONE_F_ONE_B)], num_stages=3), Training)
    assert "the orders run 2 stages, but num_stages" in faults["/schedule/1/orders"].detail


@pytest.mark.parametrize(("listed", "state"), [(["forward_only"], 0.0), (["1f1b", "zb_h1"], 6.0)])
def test_the_optimizer_of_listed_schedules_is_that_of_each(listed: list[str], state: float) -> None:
    """Tests the default, which depends on whether anything is trained."""
    assert validate(Training, training(listed)).optimizer_factors().state_bytes_per_weight_byte == state


def test_runtime_and_queueing_are_asked_for(refused: Any) -> None:
    """Tests the defaults and the words."""
    plain = validate(Training, training())
    assert (plain.runtime, plain.queueing) == ("generic", False)
    asked = validate(Training, training(runtime="torch", queueing=True))
    assert (asked.runtime, asked.queueing) == ("torch", True)
    assert list(refused(training(runtime="jax", queueing=1), Training)) == ["/runtime", "/queueing"]


def test_all_forms_of_a_schedule_are_in_the_schema() -> None:
    """Tests that a name, an object, and a list of these are described."""
    one, several = Training.model_json_schema()["properties"]["schedule"]["oneOf"]
    assert [sorted(form) for form in one["anyOf"]] == [["enum", "type"], ["$ref"]]
    assert (several["type"], several["items"], several["minItems"]) == ("array", one, 1)
