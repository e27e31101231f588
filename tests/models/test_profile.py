"""Tests of model profiles: names, tensors and holders."""

from typing import Any

import pytest

from partita.models.document import validate
from partita.models.profile import ModelProfile, Tensor


def abc(**fields: object) -> dict[str, object]:
    """Give a model of three layers, a, b and c."""
    return {"layers": [{"name": name, "forward_s": 1.0} for name in "abc"], **fields}


def tensor(producer: str, *consumers: str, **fields: object) -> dict[str, object]:
    """Give a tensor named after its ends."""
    return {
        "name": producer + "".join(consumers),
        "producer": producer,
        "consumers": list(consumers),
        "bytes": 8,
        **fields,
    }


def test_a_dag_is_read() -> None:
    """Tests tensors with several readers, and gradients of either kind."""
    read = validate(
        ModelProfile,
        abc(
            tensors=[
                tensor("a", "b", "c"),
                tensor("b", "c", gradient_bytes=0),
                tensor("c", "a", **{"pass": "backward"}),
            ]
        ),
    )
    assert read.tensors is not None
    assert [t.backward_bytes for t in read.tensors] == [8, 0, 0]
    assert [t.direction for t in read.tensors] == ["forward", "forward", "backward"]
    assert read.layer_index() == {"a": 0, "b": 1, "c": 2}


def test_no_tensors_and_an_empty_list_differ() -> None:
    """Tests that a chain is None and a graph without edges is empty."""
    assert validate(ModelProfile, abc()).tensors is None
    assert validate(ModelProfile, abc(tensors=None)).tensors is None
    assert validate(ModelProfile, abc(tensors=[])).tensors == ()


def test_the_direction_is_called_pass_in_json() -> None:
    """Tests that Python code gives ``direction`` and JSON has ``pass``."""
    made = Tensor(name="t", producer="a", consumers=("b",), bytes=1, direction="backward")
    assert made.model_dump()["pass"] == "backward"
    assert validate(Tensor, made.model_dump(mode="json")) == made


@pytest.mark.parametrize(
    ("fields", "pointer", "detail"),
    [
        ({"layers": [{"name": "a", "forward_s": 1}] * 2}, "/layers/1/name", "the first is number 0"),
        ({"tensors": [tensor("a", "b"), tensor("a", "b")]}, "/tensors/1/name", "second tensor"),
        ({"tensors": [tensor("q", "b")]}, "/tensors/0/producer", "no layer 'q'"),
        ({"tensors": [tensor("a", "b", "q")]}, "/tensors/0/consumers/1", "there are 'a', 'b', 'c'"),
        ({"tensors": [tensor("a", "b", "b")]}, "/tensors/0/consumers/1", "listed twice"),
        ({"tensors": [tensor("a", "b", "a")]}, "/tensors/0/consumers/1", "its own tensor"),
        ({"tensors": [{**tensor("a"), "consumers": "b"}]}, "/tensors/0/consumers", "expected a list"),
        ({"tensors": [tensor("a")]}, "/tensors/0/consumers", "at least 1"),
        ({"tensors": [tensor("a", "b", **{"pass": "sideways"})]}, "/tensors/0/pass", "'forward' or 'backward'"),
        (
            {"tensors": [tensor("a", "b", gradient_bytes=1, **{"pass": "backward"})]},
            "/tensors/0/gradient_bytes",
            "leave gradient_bytes out",
        ),
        ({"weights": [{"name": "w", "bytes": 1, "layers": ["a", "q"]}]}, "/weights/0/layers/1", "no layer 'q'"),
        ({"weights": [{"name": "w", "bytes": 1, "layers": []}]}, "/weights/0/layers", "at least 1"),
        ({"buffers": [{"name": "w", "bytes": 1, "layers": ["a"]}] * 2}, "/buffers/1/name", "second buffer"),
        ({"shared_activations": [{"bytes": 1, "layers": ["q"]}]}, "/shared_activations/0/layers/0", "no layer 'q'"),
    ],
)
def test_names_are_unique_and_known(refused: Any, fields: dict[str, object], pointer: str, detail: str) -> None:
    """Tests every rule on names."""
    assert detail in refused(abc(**fields), ModelProfile)[pointer].detail


def test_one_edge_is_not_written_twice(refused: Any) -> None:
    """Tests that output_bytes next to tensors are refused, also those of an option, and that zero is no edge."""
    document: Any = abc(tensors=[])
    document["layers"][0]["output_bytes"] = 0
    assert validate(ModelProfile, document)
    document["layers"][0]["output_bytes"] = 8
    document["layers"][1]["options"] = [{"scenario": "s", "forward_s": 8}, {"scenario": "long", "output_bytes": 8}]
    faults = refused(document, ModelProfile)
    assert list(faults) == ["/layers/0/output_bytes", "/layers/1/options/1/output_bytes"]
    assert "move output_bytes of 'a' into a tensor" in faults["/layers/0/output_bytes"].detail


def test_a_similar_name_is_suggested_among_many(refused: Any) -> None:
    """Tests that with many layers the message names the one that was probably meant."""
    document: Any = {"layers": [{"name": f"encoder.{index}", "forward_s": 1} for index in range(20)]}
    document["weights"] = [{"name": "w", "bytes": 1, "layers": ["encodr.7"]}]
    assert "did you mean 'encoder.7'?" in refused(document, ModelProfile)["/weights/0/layers/0"].detail
