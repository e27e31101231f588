"""Tests of the reader of Piper's inputs, on a file small enough to check by hand."""

import json
from typing import Any

import pytest

from partita.models.errors import InvalidInput
from partita.models.readers.piper import read


def way(kind: str, time: float, a: float, b: float, **more: object) -> dict[str, Any]:
    """Give a configuration with 100 bytes of weights."""
    return {"id": kind, "timePerSample": time, "parameterSize": 100.0, "memoryUsageA": a, "memoryUsageB": b, **more}


def small() -> dict[str, Any]:
    """Give two nodes, listed against their order, that run on one or two devices."""
    plain, full = "vanilla", "activation recomp"
    return {
        "maxDevices": 4,
        "maxMemoryPerDevice": 1000.0,
        "bandwidth": 5000.0,
        "mbsInBatch": 6,
        "nodes": [
            {
                "id": 7,
                "name": "block",
                "TMPCs": {
                    "1": [way(plain, 2.0, 50.0, 200.0), way(full, 3.0, 4.5, 245.5)],
                    "2": [way(plain, 1.5, 30.0, 230.0, syncTimeFw={"3": 16.0})],
                },
            },
            {
                "id": 3,
                "name": "block",
                "TMPCs": {
                    "1": [way(plain, 1.0, 0.0, 200.0), way(full, 1.0, 0.0, 200.0)],
                    "2": [way(plain, 0.5, 0.0, 200.0, syncTimeBw={"7": 8.0})],
                },
            },
        ],
        "edges": [{"sourceId": 3, "destId": 7, "communicationCost": 64.0}],
    }


def text(document: object) -> bytes:
    """Write a document as JSON."""
    return json.dumps(document).encode()


def test_nodes_become_layers_with_options() -> None:
    """Tests order, names, and the options of both degrees and both kinds of recompute."""
    first, second = read(text(small())).model.layers
    assert (first.name, second.name) == ("block#3", "block#7")
    assert (second.forward_s, second.backward_s, second.activation_bytes) == (0.0, 2.0, 50)
    assert (second.weight_bytes, second.buffer_bytes) == (100, 0)
    full, wide = second.options
    assert full.selectors == (None, "full", 1, None, None)
    assert (full.backward_s, full.activation_bytes, full.buffer_bytes) == (3.0, 5, 46)
    assert wide.selectors == (None, None, 2, None, None)
    assert (wide.backward_s, wide.activation_bytes, wide.weight_bytes, wide.buffer_bytes) == (1.5, 30, 100, 30)
    (only,) = first.options  # its recompute changes nothing
    assert only.selectors == (None, None, 2, None, None)


def test_edges_become_tensors_with_resharding() -> None:
    """Tests that traffic by predecessor arrives and traffic by successor is sent."""
    tensors = read(text(small())).model.tensors
    assert tensors is not None
    (tensor,) = tensors
    assert (tensor.producer, tensor.consumers, tensor.bytes, tensor.backward_bytes) == ("block#3", ("block#7",), 64, 64)
    (more,) = tensor.resharding
    assert (more.tensor_parallel, more.send_bytes, more.receive_bytes) == (2, 8, 16)


def test_the_set_up_is_that_of_the_file() -> None:
    """Tests devices, degrees and convention; every degree of data parallelism divides the microbatches."""
    problem = read(text(small()))
    training = problem.training
    assert (problem.cluster.num_devices, problem.objective, training.num_microbatches) == (4, "bottleneck_time", 6)
    assert (training.tensor_parallel, training.data_parallel, training.per_stage_degrees) == ((1, 2), (1, 2, 3), True)
    assert (training.communication, training.routing) == ("blocking", "direct")
    assert (training.gradient_exchange, training.runtime) == ("half_duplex", "none")
    assert problem.constraints.recompute == "choose"


def test_options_leave_out_what_may_be_chosen() -> None:
    """Tests every option of the reader."""
    problem = read(
        text(small()),
        devices=8,
        memory_bytes="2kB",
        bandwidth_bytes_per_s=1e6,
        time_unit="ms",
        no_data_parallel=True,
        no_tensor_parallel=True,
        no_recompute=True,
    )
    assert problem.cluster.num_devices == 8
    assert problem.cluster.devices["device"].memory_bytes == 2000
    assert problem.cluster.nodes[0].fabric is not None
    assert problem.cluster.nodes[0].fabric.bandwidth_bytes_per_s == 1e6
    assert (problem.training.tensor_parallel, problem.training.data_parallel) == (1, 1)
    assert problem.constraints.recompute == "none"
    assert problem.model.layers[1].backward_s == pytest.approx(0.002)


def changed(place: list[str | int], value: object) -> bytes:
    """Give the file with one value replaced."""
    document: Any = small()
    here = document
    for step in place[:-1]:
        here = here[step]
    here[place[-1]] = value
    return text(document)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (["nodes", 1, "id"], 7, "a second node with this id"),
        (["edges", 0, "destId"], 8, "there is no node with this id"),
        (["edges", 0, "destId"], 3, "does not read its own"),
        (["nodes", 1, "TMPCs"], {"1": [way("vanilla", 1.0, 0.0, 200.0)]}, "the same as the first node's"),
        (["nodes", 1, "TMPCs", "2"], [way("activation recomp", 1.0, 0.0, 200.0)], "named 'vanilla' is needed"),
        (["nodes", 0, "TMPCs", "1", 1, "parameterSize"], 90.0, "must not depend on recompute"),
        (["nodes", 0, "TMPCs", "1", 0, "memoryUsageB"], 190.0, "need twice parameterSize"),
        (["nodes", 0, "TMPCs", "1", 0, "timePerSample"], -1.0, "at least 0"),
        (["mbsInBatch"], 0, "at least 1"),
    ],
)
def test_bad_files_are_refused(place: list[str | int], value: object, words: str) -> None:
    """Tests every rule on the file."""
    with pytest.raises(InvalidInput, match=words):
        read(changed(place, value))


def test_cycles_and_repeated_edges_are_refused() -> None:
    """Tests edges that go round in a circle, and two edges between the same nodes."""
    document = small()
    document["edges"].append({"sourceId": 7, "destId": 3, "communicationCost": 1.0})
    with pytest.raises(InvalidInput, match="cycle: block"):
        read(text(document))
    document["edges"][1] = dict(document["edges"][0])
    with pytest.raises(InvalidInput, match="a second edge"):
        read(text(document))


@pytest.mark.parametrize("options", [{"time_unit": "us"}, {"devices": 0}, {"memory_bytes": "16"}])
def test_bad_options_are_refused(options: Any) -> None:
    """Tests options out of range."""
    with pytest.raises(InvalidInput):
        read(text(small()), **options)
