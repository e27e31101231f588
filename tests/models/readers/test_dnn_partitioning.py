"""Tests of the reader of dnn-partitioning's inputs, on files small enough to check by hand."""

import json
from typing import Any

import pytest

from partita.models.errors import InvalidInput
from partita.models.problem import Problem
from partita.models.readers import READERS
from partita.models.readers.dnn_partitioning import read


def node(number: int, color: int | None = None, **fields: object) -> dict[str, object]:
    """Give a node of one millisecond."""
    colored = {} if color is None else {"colorClass": color}
    return (
        {"id": number, "name": f"n{number}", "supportedOnFpga": 1, "fpgaLatency": 1.0, "isBackwardNode": 0, "size": 4.0}
        | colored
        | fields
    )


def edge(source: int, target: int, cost: float = 0.5, size: float = 512.0) -> dict[str, object]:
    """Give an edge of half a millisecond, at 1024 bytes per millisecond."""
    return {"sourceId": source, "destId": target, "cost": cost, "size": size}


def file(nodes: list[dict[str, object]], edges: list[dict[str, object]]) -> bytes:
    """Give the bytes of an input file for two accelerators."""
    document = {"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 100.0, "nodes": nodes, "edges": edges}
    return json.dumps(document).encode()


TRAINING = file(
    [
        node(1, 1),
        node(2, 2, fpgaLatency=2.0),
        node(3, 3),
        node(13, 3, isBackwardNode=1),
        node(12, 2, isBackwardNode=True, fpgaLatency=3.0),
        node(11, 1, isBackwardNode=1),
    ],
    # 1 is read by 2, and by the gradients of 2 and 3; gradients flow back
    [edge(1, 2), edge(1, 12), edge(1, 13), edge(2, 3), edge(3, 13), edge(13, 12, 0.25, 256), edge(12, 11)],
)


def seconds(problem: Problem, stage_of: dict[str, int]) -> list[float]:
    """Give the load of every stage by the definition: its times, a cost per value written, a cost per value read."""
    fabric = problem.cluster.nodes[0].fabric
    assert fabric is not None
    load = [0.0] * (max(stage_of.values()) + 1)
    for layer in problem.model.layers:
        load[stage_of[layer.name]] += layer.forward_s + layer.backward_s
    for tensor in problem.model.tensors or ():
        home = stage_of[tensor.producer]
        readers = {stage_of[name] for name in tensor.consumers} - {home}
        for stage in [home, *readers] if readers else []:
            load[stage] += tensor.bytes / fabric.bandwidth_bytes_per_s
    return load


def test_color_classes_become_layers() -> None:
    """Tests names, order, times in seconds and sizes: a class has the sums of its nodes."""
    layers = read(TRAINING).model.layers
    assert [layer.name for layer in layers] == ["n1", "n2", "n3"]
    assert [layer.forward_s for layer in layers] == [0.001, 0.002, 0.001]
    assert [layer.backward_s for layer in layers] == [0.001, 0.003, 0.001]
    assert [layer.weight_bytes for layer in layers] == [8, 8, 8]


def test_the_problem_is_that_of_the_paper() -> None:
    """Tests the set-up that reproduces dnn-partitioning's objective."""
    problem = read(TRAINING)
    assert problem.training.schedules[0].kind == "1f1b"
    assert (problem.training.communication, problem.training.routing) == ("blocking", "host")
    assert problem.training.optimizer_factors().state_bytes_per_weight_byte == 0
    assert (problem.objective, problem.training.num_stages, problem.training.num_microbatches) == (
        "bottleneck_time",
        None,
        1,
    )
    assert (problem.cluster.num_devices, problem.cluster.devices["accelerator"].memory_bytes) == (2, 100)
    assert read(file([node(1)], [])).training.schedules[0].kind == "forward_only"


def test_every_value_is_charged_once_per_stage() -> None:
    """Tests loads of n1 | n2, n3: node 1 is read three times on the second stage but paid once; 12 goes back."""
    first, second = seconds(read(TRAINING), {"n1": 0, "n2": 1, "n3": 1})
    assert first == pytest.approx(0.002 + 0.0005 + 0.0005)
    assert second == pytest.approx(0.007 + 0.0005 + 0.0005)


def test_values_cut_twice_are_read_twice() -> None:
    """Tests loads of n1 | n2 | n3: node 1 is written once and read on both other stages."""
    loads = seconds(read(TRAINING, devices=3), {"n1": 0, "n2": 1, "n3": 2})
    assert loads[0] == pytest.approx(0.002 + 0.0005 + 0.0005)
    assert loads[1] == pytest.approx(0.005 + 0.0005 + 0.0005 + 0.00025 + 0.0005)
    assert loads[2] == pytest.approx(0.002 + 0.0005 + 0.0005 + 0.00025)


def test_gradients_impose_no_order() -> None:
    """Tests directions: values of forward nodes go forward with no gradient of their own, others backward."""
    tensors = read(TRAINING).model.tensors
    assert tensors is not None
    assert [(t.name, t.direction, t.gradient_bytes, t.consumers) for t in tensors] == [
        ("n1", "forward", 0, ("n2", "n3")),  # n3 reads it only in its gradient, but comes later anyway
        ("n2", "forward", 0, ("n3",)),
        ("n13", "backward", None, ("n2",)),
        ("n12", "backward", None, ("n1",)),
    ]


def test_a_backward_reader_that_may_come_first_is_not_ordered() -> None:
    """Tests a class that reads a value only in the backward pass, and need not follow its source."""
    text = file([node(1, 1), node(2, 2), node(9, 9, isBackwardNode=1)], [edge(1, 2), edge(1, 9)])
    tensors = read(text).model.tensors
    assert tensors is not None
    assert [(t.name, t.direction, t.consumers) for t in tensors] == [
        ("n1", "forward", ("n2",)),
        ("n1 (backward)", "backward", ("n9",)),
    ]


def test_classes_in_a_circle_stay_together() -> None:
    """Tests two classes that read from each other: one group, and no tensor between them."""
    nodes = [node(1, 1), node(2, 2), node(3, 1), node(4, 4)]
    problem = read(file(nodes, [edge(1, 2), edge(2, 3), edge(3, 4), edge(2, 4)]))
    assert problem.constraints.together == (("n1", "n2"),)
    assert problem.model.tensors is not None
    assert [(t.producer, t.consumers) for t in problem.model.tensors] == [("n2", ("n4",)), ("n1", ("n4",))]
    assert problem.model.layers[-1].name == "n4"


def test_costs_keep_their_digits() -> None:
    """Tests that the bandwidth is that of most edges, or large enough for costs of a part of a byte."""
    usual = read(file([node(1), node(2)], [edge(1, 2)]))
    fine = read(file([node(1), node(2), node(3)], [edge(1, 2), edge(2, 3, 0.5 / 4096, 0.125)]))
    assert usual.cluster.nodes[0].fabric is not None
    assert usual.cluster.nodes[0].fabric.bandwidth_bytes_per_s == pytest.approx(1024e3)
    assert fine.cluster.nodes[0].fabric is not None
    assert fine.cluster.nodes[0].fabric.bandwidth_bytes_per_s == pytest.approx(1024e6)
    assert seconds(fine, {"n1": 0, "n2": 0, "n3": 1})[1] == pytest.approx(0.001 + 0.0005 / 4096, rel=1e-12)


def test_costs_beyond_any_precision_are_kept_as_well_as_possible() -> None:
    """Tests a cost of no whole number of bytes at any bandwidth, next to a huge one."""
    problem = read(file([node(1), node(2), node(3)], [edge(1, 2, 1e-9 / 3, 0), edge(2, 3, 1e6, 0)]))
    assert seconds(problem, {"n1": 0, "n2": 0, "n3": 1})[1] == pytest.approx(1000.001)


def test_costs_may_be_in_seconds() -> None:
    """Tests the physically consistent reading of the layer graphs."""
    problem = read(file([node(1), node(2)], [edge(1, 2)]), edge_cost_unit="s")
    assert seconds(problem, {"n1": 0, "n2": 1})[0] == pytest.approx(0.001 + 0.5)


def test_options_replace_what_the_file_says() -> None:
    """Tests devices and memory."""
    problem = read(TRAINING, devices=5, memory_bytes="1kB")
    assert (problem.cluster.num_devices, problem.cluster.devices["accelerator"].memory_bytes) == (5, 1000)
    assert READERS["dnn-partitioning"].read is read


def test_names_are_made_unique() -> None:
    """Tests two nodes of one name and a node without one."""
    names = [None, "a\nb", "n9", "n9", "n9#4"]
    nodes = [node(number, name=name) for number, name in enumerate(names, start=1)]
    layers = read(file([*nodes, node(6, name="n9#4")], [])).model.layers
    assert sorted(layer.name for layer in layers) == ["n9", "n9#4", "n9#4#5", "n9#4#6", "node1", "node2"]
    taken = read(file([node(1, name="x#3"), node(2, name="x"), node(3, name="x")], [])).model.layers
    assert sorted(layer.name for layer in taken) == ["x", "x#3", "x#3'"]


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        (b"{", ""),
        (b"{}", "/maxFPGAs"),
        (file([], []), "/nodes"),
        (file([node(1, fpgaLatency=-1)], []), "/nodes/0/fpgaLatency"),
        (file([node(1, fpgaLatency=1e-310)], []), "/nodes/0/fpgaLatency"),
        (file([node(1), node(2)], [edge(1, 2, 1e-13)]), "/edges/0/cost"),
        (file([node(1, isBackwardNode=2)], []), "/nodes/0/isBackwardNode"),
        (file([node(1, supportedOnFpga=0)], []), "/nodes/0/supportedOnFpga"),
        (file([node(1), node(1)], []), "/nodes/1/id"),
        (file([node(1)], [edge(1, 2)]), "/edges/0/destId"),
        (file([node(1), node(2), node(3)], [edge(1, 2), edge(1, 3, 0.75)]), "/edges/1/cost"),
        (file([node(1, isBackwardNode=1), node(2)], [edge(1, 2)]), "/edges/0/destId"),
    ],
)
def test_bad_files_are_refused_with_a_pointer(text: bytes, pointer: str) -> None:
    """Tests every rule on the file."""
    with pytest.raises(InvalidInput) as caught:
        read(text)
    assert pointer in [fault.pointer for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"devices": 0}, "devices"),
        ({"memory_bytes": "12"}, "memory_bytes"),
        ({"edge_cost_unit": "us"}, "edge_cost_unit"),
    ],
)
def test_bad_options_are_refused_by_name(options: Any, words: str) -> None:
    """Tests that the message names the option."""
    with pytest.raises(InvalidInput, match=words):
        read(TRAINING, **options)
