"""Tests of the reader of PipeDream's profiles, on files small enough to check by hand."""

from typing import Any

import pytest

from partita.models.errors import InvalidInput
from partita.models.readers import READERS
from partita.models.readers.pipedream import read


def node(name: str, description: str = "ReLU(inplace)", forward: str = "1.500", size: str = "1024.000") -> str:
    """Give the line of a node that takes twice as long backward."""
    costs = f"forward_compute_time={forward}, backward_compute_time=3.000, activation_size={size}, parameter_size=8.000"
    return f"{name} -- {description} -- {costs}"


SKIP = "\n".join(
    [
        "\tnode2 -- node10",  # lines come in any order
        node("node1", "Input0", "635.902"),
        node("node10", "Add(3, 4)"),
        node("node2", "Conv2d(3, 64, kernel_size=(3, 3), padding=(1, 1))") + " -- stage_id=1",
        node("node3", "LSTM(2, 2)", size="[1024.0; 512.0; 512.0]"),
        "\tnode1 -- node2",
        "\tnode2 -- node3",
        "\tnode3 -- node10",
    ]
).encode()


def test_nodes_become_layers_in_the_order_of_their_numbers() -> None:
    """Tests order, times in seconds and bytes; the Input node and its edge are gone."""
    problem = read(SKIP)
    layers = problem.model.layers
    assert [layer.name for layer in layers] == ["node2", "node3", "node10"]
    assert [(layer.forward_s, layer.backward_s) for layer in layers] == [(0.0015, 0.003)] * 3
    assert [layer.activation_bytes for layer in layers] == [1024, 2048, 1024]
    assert [layer.weight_bytes for layer in layers] == [8, 8, 8]
    assert problem.model.tensors is not None
    assert [(t.producer, t.consumers, t.bytes, t.backward_bytes) for t in problem.model.tensors] == [
        ("node2", ("node10", "node3"), 1024, 1024),
        ("node3", ("node10",), 2048, 2048),
    ]


def test_input_nodes_can_be_kept() -> None:
    """Tests that data loading then is a layer like any other."""
    layers = read(SKIP, keep_inputs=True).model.layers
    assert layers[0].name == "node1"
    assert layers[0].forward_s == pytest.approx(0.635902)


def test_the_set_up_follows_the_options() -> None:
    """Tests defaults and options."""
    problem = READERS["pipedream"].read(SKIP, devices=8, bandwidth_bytes_per_s=1e10, memory_bytes=10**9)
    assert problem.cluster.num_devices == problem.training.num_microbatches == 8
    assert problem.cluster.nodes[0].fabric is not None
    assert problem.cluster.nodes[0].fabric.bandwidth_bytes_per_s == 1e10
    assert (problem.objective, problem.training.communication) == ("bottleneck_time", "overlapped")
    assert read(SKIP).cluster.devices["v100"].memory_bytes == 2**34


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "no nodes"),
        (b"\xff", "not UTF-8"),
        (b"node1 -- ReLU", "line 1: a node is"),
        (node("node1").replace("=1.500", "=fast").encode(), "line 1: costs are"),
        (node("node1", size="[1; x]").encode(), "activation_size is a number, or a list"),
        (node("node1", forward="1e99").encode(), "a figure above"),
        (node("node1", forward="1.0e-13").encode(), "line 1: a time is 0 or at least 1e-12 ms.*got '1e-13'"),
        (f"{node('node1')}\n{node('node1')}".encode(), "line 2: a second node"),
        (f"{node('node1')}\n\tnode1".encode(), "line 2: an edge is"),
        (f"{node('node1')}\n\tnode1 -- node7".encode(), r"line 2: an edge of a node.*node7"),
        (f"{node('node1')}\n\tnode1 -- node1".encode(), "line 2: a node does not read its own"),
        (node("node1", "Input0").encode(), "only Input nodes"),
        (f"{node('node1')}\n{node('node2')}\n\tnode1 -- node2\n\tnode2 -- node1".encode(), "cycle: node1 -> node2"),
    ],
)
def test_bad_files_are_refused_with_the_line(text: bytes, words: str) -> None:
    """Tests every rule on the file."""
    with pytest.raises(InvalidInput, match=words):
        read(text)


@pytest.mark.parametrize("options", [{"devices": 0}, {"memory_bytes": "16"}, {"bandwidth_bytes_per_s": -1.0}])
def test_bad_options_are_refused(options: Any) -> None:
    """Tests options out of range."""
    with pytest.raises(InvalidInput):
        read(SKIP, **options)
