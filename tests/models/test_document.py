"""Tests of pointers and remedies in refusals."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lines_run import lines_run
from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.problem import Problem
from partita.models.profile import ModelProfile


def set_at(document: Any, path: tuple[str | int, ...], value: object) -> None:
    """Put a value at a place."""
    for step in path[:-1]:
        document = document[step]
    document[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value", "detail", "code"),
    [
        (("x",), 1, "the fields here are 'model', 'cluster'", "extra_forbidden"),
        (("model", "layers", 0, "forward_ms"), 1, "did you mean 'forward_s'?", "extra_forbidden"),
        (("training", "optimizer"), {"gradient_bytes": 1}, None, "missing"),
        (("cluster", "devices", "a100", "memory"), 1, "did you mean 'memory_bytes'?", "extra_forbidden"),
        (("model", "layers", 0, "forward_s"), "1", "without quotes", "float_type"),
        (("model", "layers", 0, "forward_s"), True, "expected a number", "float_type"),
        (("model", "layers", 0), 3, "expected an object", "model_type"),
        (("model", "layers"), {}, "expected a list", "tuple_type"),
        (("model", "layers"), [], "at least 1", "too_short"),
        (("cluster", "devices"), {}, "at least 1", "too_short"),
        (("training", "num_microbatches"), 4.0, "write 4", "int_type"),
        (("training", "num_microbatches"), 65537, "at most 65536", "less_than_equal"),
        (("training", "communication"), "sync", "'overlapped' or 'blocking'", "literal_error"),
        (("training", "per_stage_degrees"), 1, "true or false", "bool_type"),
        (("training", "schedule"), "1F1B", "known are forward_only", "schedule_kind"),
        (("training", "schedule"), 3, "name of a schedule", "schedule_form"),
        (("training", "schedule"), {"kind": "none"}, None, "literal_error"),
        (("training", "optimizer"), "adamw", "'adam_mixed'", "literal_error"),
        (("training", "optimizer"), 3, "name of an optimizer", "optimizer_form"),
        (("objective",), None, "name of an objective", "objective_form"),
        (("objective",), "time", "'bottleneck_time'", "literal_error"),
        (("search",), {"workers": 65}, None, "less_than_equal"),
        (("search",), {"time_limit_s": 0}, None, "greater_than"),
    ],
)
def test_faults_say_where_and_what_would_be_right(
    two_layers: Any, refused: Any, path: tuple[str | int, ...], value: object, detail: str | None, code: str
) -> None:
    """Tests that the pointer is that of the value (or leads into it), and the words of the remedy."""
    set_at(two_layers, path, value)
    pointer, fault = next(iter(refused(two_layers).items()))
    where = "/" + "/".join(str(step) for step in path)
    assert fault.code == code
    if detail is None:
        assert pointer.startswith(where + "/")
    else:
        assert pointer == where
        assert detail in fault.detail


def test_a_missing_field_is_pointed_at(two_layers: Any, refused: Any) -> None:
    """Tests that the pointer names the field that is not there, without a value."""
    del two_layers["model"]["layers"][1]["forward_s"]
    faults = refused(two_layers)
    assert list(faults) == ["/model/layers/1/forward_s"]
    assert faults["/model/layers/1/forward_s"].value is None


def test_items_at_fault_do_not_make_a_list_too_short(two_layers: Any, refused: Any) -> None:
    """Tests that only the item is reported where the only item of a list is wrong."""
    two_layers["model"]["layers"] = [{"name": "a", "forward_s": -1}]
    assert list(refused(two_layers)) == ["/model/layers/0/forward_s"]


def test_several_faults_are_told_at_once(two_layers: Any, refused: Any) -> None:
    """Tests that independent faults come together."""
    two_layers["model"]["layers"][0]["forward_s"] = -1
    two_layers["training"]["num_microbatches"] = 0
    two_layers["limits"] = {"peak_memory_bytes": 0}
    assert list(refused(two_layers)) == [
        "/model/layers/0/forward_s",
        "/training/num_microbatches",
        "/limits/peak_memory_bytes",
    ]


def test_keys_with_slashes_are_escaped(two_layers: Any, refused: Any) -> None:
    """Tests a name that needs escaping in a pointer."""
    two_layers["cluster"]["devices"]["a/b~c"] = {"memory_bytes": 0}
    assert list(refused(two_layers)) == ["/cluster/devices/a~1b~0c/memory_bytes"]


def test_the_whole_document_may_be_at_fault(refused: Any) -> None:
    """Tests a document that is no object."""
    assert refused([])[""].detail.startswith("expected an object")


def test_many_faults_are_counted(two_layers: Any) -> None:
    """Tests that a hundred faults give fifty and the number of the others."""
    two_layers["model"]["layers"] = [{"name": f"l{i}", "forward_s": -1} for i in range(100)]
    with pytest.raises(InvalidInput) as caught:
        validate(Problem, two_layers)
    assert len(caught.value.faults) == 51
    assert caught.value.faults[-1].detail == "50 more faults"


def test_faults_between_fields_are_counted_too(five_layers: Any, refused: Any) -> None:
    """Tests that a hundred unknown names give fifty and the number of the others."""
    five_layers["constraints"] = {"pins": {f"q{index}": 0 for index in range(100)}}
    faults = refused(five_layers)
    assert len(faults) == 51
    assert faults[""].detail == "50 more faults"


def test_parts_may_be_models_already(five_layers: Any, refused: Any) -> None:
    """Tests that Python code can put a problem together from parts, and that pointers lead into them."""
    option = {"device": "v100", "forward_s": 1}
    five_layers["model"]["layers"][2]["options"] = [option]
    five_layers["model"] = validate(ModelProfile, five_layers["model"])
    assert list(refused(five_layers)) == ["/model/layers/2/options/0/device"]


def test_a_field_is_read_by_its_json_name_only(refused: Any) -> None:
    """Tests that "pass" cannot be written "direction", though Python code calls it so."""
    tensor = {"name": "t", "producer": "a", "consumers": ["b"], "bytes": 1, "direction": "forward"}
    layers = [{"name": "a", "forward_s": 1}, {"name": "b", "forward_s": 1}]
    faults = refused({"layers": layers, "tensors": [tensor]}, ModelProfile)
    assert "'pass'" in faults["/tensors/0/direction"].detail


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["12GB", "a", "b", "node0:1", "custom", {}, [], [[]], {"kind": "custom"}, ["a", "b"], {"a": 1}]),
)


@given(st.data())
def test_any_change_is_read_or_refused_with_a_place(data: st.DataObject) -> None:
    """Tests that odd values and keys anywhere give a problem or an InvalidInput whose pointers lead somewhere."""
    document = full_document()
    places = list(places_in(document))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places))
        with suppress(KeyError, IndexError, TypeError):  # an earlier change may have taken the place away
            set_at(document, path, data.draw(ODD))
    try:
        validate(Problem, document)
    except InvalidInput as error:
        for fault in error.faults:
            assert fault.detail
            assert fault.code in ("missing", "more_faults") or exists(document, fault.pointer)


def full_document() -> Any:
    """Give a problem that uses every part of the contract."""
    layers = [{"name": name, "forward_s": 1.0, "backward_s": 2.0, "weight_gradient_s": 1.0} for name in "abcd"]
    layers[0] |= {"options": [{"device": "v100", "forward_s": 2.0}, {"recompute": "full", "weight_gradient_bytes": 0}]}
    link = {"bandwidth_bytes_per_s": 1e9, "latency_s": 1e-6}
    return {
        "model": {
            "name": "full",
            "layers": layers,
            "tensors": [
                {"name": "t", "producer": "a", "consumers": ["b", "d"], "bytes": 8, "shape": [2, 4], "dtype": "float8"},
                {"name": "g", "producer": "d", "consumers": ["a"], "bytes": 8, "pass": "backward"},
            ],
            "weights": [{"name": "w", "bytes": "1MB", "layers": ["a", "d"]}],
            "buffers": [{"name": "w", "bytes": 1, "layers": ["a"], "mutated": True}],
            "shared_activations": [{"bytes": 1, "layers": ["b", "c"]}],
        },
        "cluster": {
            "devices": {"v100": {"memory_bytes": "16GiB", "reserve_bytes": 1, "speed": 0.5}},
            "nodes": [{"name": "node", "replicas": 2, "device": "v100", "count": 4, "fabric": link, "uplink": link}],
            "links": [{"between": ["node0", "node1"], **link}, {"between": ["node0:0", "node1:3"], **link}],
        },
        "training": {
            "schedule": ["zb_v", {"kind": "interleaved_1f1b", "chunks_per_rank": 2}],
            "num_stages": [2, 4],
            "num_microbatches": 4,
            "tensor_parallel": [1, 2],
            "optimizer": {"gradient_bytes_per_weight_byte": 1, "state_bytes_per_weight_byte": 2, "step_s": 0.1},
        },
        "scenarios": [{"name": "short", "share": 0.5}, {"name": "long", "share": 0.5}],
        "objective": {"iteration_time_s": 1.0},
        "limits": {"peak_memory_bytes": "8GiB"},
        "constraints": {"pins": {"a": 0}, "together": [["a", "b"]], "apart": [["a", "d"]], "recompute": "full"},
        "search": {"candidates": 3},
    }


def places_in(document: Any) -> Iterator[tuple[str | int, ...]]:
    """Give the path of every value, and of a field that is not there."""
    members = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in members:
        yield (key,)
        if isinstance(value, dict | list):
            yield from ((key, *path) for path in places_in(value))
    if isinstance(document, dict):
        yield ("new/field",)


def exists(document: Any, pointer: str) -> bool:
    """Tell whether a pointer leads to a value."""
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        try:
            document = document[int(key)] if isinstance(document, list) else document[key]
        except (KeyError, IndexError, TypeError, ValueError):
            return False
    return True


def test_every_part_of_the_contract_is_read() -> None:
    """Tests the document that the changes start from."""
    problem = validate(Problem, full_document())
    assert validate(Problem, problem.model_dump(mode="json")) == problem


@pytest.mark.parametrize("item", [0, {}, {"a": 0, "b": 0}])
def test_hostile_lists_are_refused_in_linear_time(two_layers: Any, item: object) -> None:
    """Tests that many faults are not collected one by one in quadratic time."""

    def refused() -> None:
        with pytest.raises(InvalidInput):
            validate(Problem, two_layers)

    def work(count: int) -> int:
        two_layers["model"]["layers"] = [item] * count
        return lines_run(refused)

    few, many = (work(count) for count in (1_500, 15_000))
    assert many < 11 * few


def test_a_list_of_many_faults_is_refused(two_layers: Any) -> None:
    """Tests that hundreds of thousands of faults end in a refusal, within the time that a test may take."""
    two_layers["model"]["layers"] = [0] * 300_000
    with pytest.raises(InvalidInput):
        validate(Problem, two_layers)


def test_reading_takes_no_longer_for_a_layer_of_many(two_layers: Any) -> None:
    """Tests a model with tensors against one of a tenth of its layers."""

    def work(count: int) -> int:
        names = [f"layer{index}" for index in range(count)]
        two_layers["model"]["layers"] = [{"name": name, "forward_s": 0.1, "weight_bytes": "1MiB"} for name in names]
        two_layers["model"]["tensors"] = [
            {"name": name, "producer": name, "consumers": [reader], "bytes": 8} for name, reader in pairwise(names)
        ]
        return lines_run(lambda: validate(Problem, two_layers))

    few, many = (work(count) for count in (200, 2_000))
    assert many < 11 * few


def test_the_largest_model_is_read(two_layers: Any) -> None:
    """Tests as many layers as are allowed."""
    two_layers["model"]["layers"] = [
        {"name": f"layer{index}", "forward_s": 0.1, "weight_bytes": "1MiB"} for index in range(20_000)
    ]
    assert len(validate(Problem, two_layers).model.layers) == 20_000
