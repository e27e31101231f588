"""The referee: what a plan costs, computed from the problem alone in the user's own units.

Nothing leaves the solver that was not computed here.
"""

import numpy as np

from partita.models.answer import Candidate
from partita.models.answer_plan import Boundary, CrossingTensor, Memory, Metrics, Stage, TiedWeight
from partita.solver.costs import StageMemory, Traffic, held, sum_by
from partita.solver.figures import Figures, make_figures
from partita.solver.instance import Instance, one
from partita.solver.measure import Measures, graph_of, measure, synchronised_bytes
from partita.solver.topology import IntArray


class Evaluator:
    """Evaluates plans of one problem.

    Parameters
    ----------
    instance
        The problem.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._figures: Figures = make_figures(instance)
        self._tensors = {tensor.name: tensor for tensor in instance.problem.model.tensors or ()}

    def measures(self, stage: IntArray, location: IntArray) -> Measures:
        """Measure a plan in seconds and bytes; ``stage`` by layer, ``location`` by stage."""
        return measure(self.instance, self._figures, [(stage, location)])[0]

    def metrics(self, measures: Measures) -> Metrics:
        """Give the metrics of a measured plan."""
        training = self.instance.problem.training
        num_stages = len(measures.times.forward)
        span = num_stages * measures.makespan
        tokens = (
            training.num_microbatches
            * training.microbatch_size
            * training.sequence_length
            * one(training.data_parallel)
        )
        iteration = float(measures.iteration)
        return Metrics(
            iteration_time_s=iteration,
            tokens_per_second=tokens / iteration if iteration > 0 else None,
            peak_memory_bytes=measures.peak_memory,
            bottleneck_time_s=float(measures.bottleneck),
            bubble_fraction=min(1.0, max(0.0, 1 - measures.busy / span)) if span > 0 else None,
            inter_node_bytes=measures.inter_node_bytes,
        )

    def candidate(
        self, stage: IntArray, location: IntArray, rank: int, devices: list[tuple[str, ...]] | None = None
    ) -> Candidate:
        """Give the full report of a plan; its stages run on ``devices`` where these are given."""
        measures = self.measures(stage, location)
        placed = self.instance.topology.devices(location) if devices is None else devices
        return Candidate(
            rank=rank,
            metrics=self.metrics(measures),
            stages=self._stages(stage, placed, measures),
            boundaries=self._boundaries(location, measures),
            tied_weights=self._tied_weights(stage),
        )

    def _stages(self, stage: IntArray, devices: list[tuple[str, ...]], measures: Measures) -> tuple[Stage, ...]:
        layers = self.instance.layers
        names = np.array([layer.name for layer in self.instance.problem.model.layers], dtype=object)
        weight_gradient = sum_by(stage, layers.weight_gradient, len(devices))
        capacity = self.instance.topology.device.memory_bytes
        return tuple(
            Stage(
                index=index,
                rank=index,
                devices=devices[index],
                layers=tuple(names[stage == index]),
                recompute=tuple(names[(stage == index) & layers.recomputed]),
                forward_s=float(measures.times.forward[index]),
                backward_s=float(measures.times.backward[index]),
                weight_gradient_s=float(weight_gradient[index]),
                memory=_memory(measures.memory, index, capacity),
            )
            for index in range(len(devices))
        )

    def _boundaries(self, location: IntArray, measures: Measures) -> tuple[Boundary, ...]:
        """Report neighbors, and other pairs of stages between which something is sent."""
        instance, moved = self.instance, measures.times.moved
        pairs = graph_of(instance, len(location)).pairs
        found = []
        for pair, (first, second) in enumerate(pairs.tolist()):
            chosen = np.flatnonzero(moved.traffic.pair == pair)
            if second > first + 1 and not len(chosen):
                continue
            far = first if instance.routing == "host" else second
            path = instance.topology.path(int(location[first]), int(location[far]))
            finite = path.bandwidth < float("inf")
            found.append(
                Boundary(
                    from_stage=first,
                    to_stage=second,
                    tensors=tuple(self._crossing(moved.traffic, int(index)) for index in chosen),
                    forward_bytes=int(moved.forward_bytes[pair]),
                    backward_bytes=int(moved.backward_bytes[pair]),
                    path=path.names,
                    bandwidth_bytes_per_s=path.bandwidth if finite else None,
                    latency_s=path.latency,
                    transfer_s=float(moved.forward[pair]),
                    backward_transfer_s=float(moved.backward[pair]),
                )
            )
        return tuple(found)

    def _crossing(self, traffic: Traffic, index: int) -> CrossingTensor:
        """Describe a tensor, or its gradient, that crosses."""
        number, back = int(traffic.tensor[index]), bool(traffic.backward[index])
        edges, name = self.instance.edges, self.instance.edges.names[number]
        given = self._tensors.get(name)
        return CrossingTensor(
            name=name,
            bytes=int(edges.backward_bytes[number] if back else edges.forward_bytes[number]),
            shape=None if given is None else given.shape,
            dtype=None if given is None else given.dtype,
            direction="backward" if back else "forward",
        )

    def _tied_weights(self, stage: IntArray) -> tuple[TiedWeight, ...]:
        weights = self.instance.weights
        weight, holder = held(weights, stage)
        sizes = synchronised_bytes(self.instance, weights.bytes, weights.gradient_bytes)
        found = []
        for number, name in enumerate(weights.names):
            if len(weights.layers[number]) > 1:
                stages = tuple(int(each) for each in holder[weight == number])
                synchronised = int(sizes[number]) if self.instance.trains and len(stages) > 1 else 0
                found.append(TiedWeight(name=name, stages=stages, synchronised_bytes=synchronised))
        return tuple(found)


def _memory(memory: StageMemory, index: int, capacity: int) -> Memory:
    return Memory(
        weights_bytes=int(memory.weights[index]),
        gradients_bytes=int(memory.gradients[index]),
        optimizer_bytes=int(memory.optimizer[index]),
        buffers_bytes=int(memory.buffers[index]),
        activations_bytes=int(memory.activations[index]),
        in_flight=int(memory.in_flight[index]),
        communication_bytes=int(memory.communication[index]),
        workspace_bytes=int(memory.workspace[index]),
        reserve_bytes=memory.reserve,
        total_bytes=int(memory.total[index]),
        capacity_bytes=capacity,
    )
