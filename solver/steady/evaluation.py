"""The referee of plans whose degrees differ from stage to stage: it prices layer by layer, tensor by tensor."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, isfinite

import numpy as np

from partita.models.answer import Candidate
from partita.models.answer_plan import Boundary, CrossingTensor, Memory, Metrics, Stage
from partita.models.problem import Problem
from partita.models.training import single
from partita.solver.steady.menu import Degree, Menu, read_menu
from partita.solver.steady.stages import exchange_s


@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage: its layers, the number of the recompute kind of each, and its degrees."""

    layers: tuple[int, ...]
    recompute: tuple[int, ...]
    tensor_parallel: int
    data_parallel: int


@dataclass(frozen=True, slots=True)
class Sent:
    """What travels between two stages for one microbatch: numbers of tensors, bytes forward and backward."""

    tensors: tuple[int, ...]
    forward: int
    backward: int


class SteadyEvaluator:
    """Prices plans of one problem.

    Parameters
    ----------
    problem
        A supported problem with ``per_stage_degrees``.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._menu = problem, read_menu(problem)
        self._names = [layer.name for layer in problem.model.layers]
        self._fabric = problem.cluster.nodes[0].fabric

    @property
    def menu(self) -> Menu:
        """What there is to choose from."""
        return self._menu

    def candidate(self, plan: Sequence[StagePlan]) -> Candidate:
        """Give the full report of a plan."""
        problem, menu = self._problem, self._menu
        sent = self._sent(plan)
        busy = [self._busy(plan, index, sent) for index in range(len(plan))]
        beside = [self._beside(plan, index, sent) for index in range(len(plan))]
        bottleneck = max(map(max, zip(busy, beside, strict=True)))
        stages = self._stages(plan, sent)
        training = problem.training
        iteration = menu.microbatches * bottleneck + training.optimizer_factors().step_s
        samples = menu.microbatches * single(training.microbatch_size) * training.sequence_length
        widths = [each.tensor_parallel * each.data_parallel for each in plan]
        used = fsum(time * width for time, width in zip(busy, widths, strict=True))
        span = sum(widths) * bottleneck
        return Candidate(
            rank=1,
            schedule=training.schedules[0],
            num_microbatches=menu.microbatches,
            microbatch_size=single(training.microbatch_size),
            metrics=Metrics(
                iteration_time_s=iteration,
                tokens_per_second=_rate(samples, iteration),
                peak_memory_bytes=max(stage.memory.total_bytes for stage in stages),
                bottleneck_time_s=bottleneck,
                microbatches_per_second=_rate(1, bottleneck),
                bubble_fraction=min(1.0, max(0.0, 1 - used / span)) if span > 0 else None,
                inter_node_bytes=0,
                num_devices=sum(widths),
            ),
            stages=stages,
            boundaries=tuple(self._boundary(ends, each) for ends, each in sorted(sent.items())),
        )

    def _sent(self, plan: Sequence[StagePlan]) -> dict[tuple[int, int], Sent]:
        """Give what travels between which two stages; neighbors always exchange a message."""
        stage_of = {layer: index for index, stage in enumerate(plan) for layer in stage.layers}
        edges, relay = self._menu.instance.edges, self._problem.training.routing == "relay"
        numbers: dict[tuple[int, int], list[int]] = {(index, index + 1): [] for index in range(len(plan) - 1)}
        for number, consumers in enumerate(edges.consumers):
            made = stage_of[int(edges.producer[number])]
            read = sorted({stage_of[int(layer)] for layer in consumers} - {made})
            ways = [(index, index + 1) for index in range(made, read[-1])] if read and relay else []
            for ends in ways if relay else [(made, each) for each in read]:
                numbers.setdefault(ends, []).append(number)
        return {
            ends: Sent(
                tuple(each),
                sum(int(edges.forward_bytes[number]) for number in each),
                sum(int(edges.backward_bytes[number]) for number in each),
            )
            for ends, each in numbers.items()
        }

    def _degree(self, stage: StagePlan) -> Degree:
        return self._menu.degrees[self._menu.tensor.index(stage.tensor_parallel)]

    def _transfer(self, sent: int) -> float:
        """Give the seconds of one transfer, its latency included."""
        return 0.0 if self._fabric is None else self._fabric.latency_s + sent / self._fabric.bandwidth_bytes_per_s

    def _busy(self, plan: Sequence[StagePlan], index: int, sent: dict[tuple[int, int], Sent]) -> float:
        """Give the busy time of a stage for every microbatch of the batch."""
        stage, blocking = plan[index], self._problem.training.communication == "blocking"
        degree = self._degree(stage)
        times = [float(degree.time[way, layer]) for layer, way in zip(stage.layers, stage.recompute, strict=True)]
        for ends, each in sent.items():
            if blocking and index in ends:
                times += [self._transfer(each.forward), self._transfer(each.backward)]
                times.append(2 * self._resharded(each, stage.tensor_parallel, index == ends[0]))
        exchanged = np.array(float(sum(int(degree.exchanged[layer]) for layer in stage.layers)))
        return fsum(times) / stage.data_parallel + float(exchange_s(self._menu, exchanged, stage.data_parallel))

    def _resharded(self, sent: Sent, degree: int, sends: bool) -> float:
        """Give the seconds of resharding in one pass at one end of a boundary."""
        tensors, total = self._problem.model.tensors, 0
        if tensors is None or self._fabric is None:
            return 0.0
        for number in sent.tensors:
            for each in tensors[number].resharding:
                if each.tensor_parallel == degree:
                    total += each.send_bytes if sends else each.receive_bytes
        return total / self._fabric.bandwidth_bytes_per_s

    def _beside(self, plan: Sequence[StagePlan], index: int, sent: dict[tuple[int, int], Sent]) -> float:
        """Give the longest overlapped transfer over a stage's boundaries, in one direction, per microbatch."""
        if self._problem.training.communication == "blocking":
            return 0.0
        sizes = [size for ends, each in sent.items() if index in ends for size in (each.forward, each.backward)]
        return max((self._transfer(size) for size in sizes), default=0.0) / plan[index].data_parallel

    def _stages(self, plan: Sequence[StagePlan], sent: dict[tuple[int, int], Sent]) -> tuple[Stage, ...]:
        node, taken, found = self._menu.instance.topology.locations[0].node, 0, []
        for index, stage in enumerate(plan):
            width = stage.tensor_parallel * stage.data_parallel
            layers = self._degree(stage).instance.layers
            chosen = dict(zip(stage.layers, stage.recompute, strict=True))
            backward = fsum(
                float(self._degree(stage).time[way, layer]) - float(layers.forward[layer])
                for layer, way in chosen.items()
            )
            recomputed = [layer for layer, way in chosen.items() if self._recomputes(stage, layer, way)]
            found.append(
                Stage(
                    index=index,
                    rank=index,
                    devices=tuple(f"{node}:{number}" for number in range(taken, taken + width)),
                    layers=tuple(self._names[layer] for layer in stage.layers),
                    recompute=tuple(self._names[layer] for layer in recomputed),
                    forward_s=fsum(float(layers.forward[layer]) for layer in stage.layers),
                    backward_s=max(0.0, backward),
                    weight_gradient_s=fsum(float(layers.weight_gradient[layer]) for layer in stage.layers),
                    memory=self._memory(plan, index, sent),
                    tensor_parallel=stage.tensor_parallel,
                    data_parallel=stage.data_parallel,
                )
            )
            taken += width
        return tuple(found)

    def _recomputes(self, stage: StagePlan, layer: int, way: int) -> bool:
        """Tell whether a layer runs by an option with a recompute."""
        return way > 0 or bool(self._degree(stage).instance.layers.recomputed[layer])

    def _memory(self, plan: Sequence[StagePlan], index: int, sent: dict[tuple[int, int], Sent]) -> Memory:
        stage, degree = plan[index], self._degree(plan[index])
        layers, device = degree.instance.layers, self._menu.device
        later = sum(each.data_parallel for each in plan[index:])
        flight = -(-later // stage.data_parallel)
        kept = fixed = 0
        for layer, way in zip(stage.layers, stage.recompute, strict=True):
            kept += int(degree.activation[way, layer])
            fixed += int(degree.fixed[way, layer])
        copies = {"none": 0, "generic": 1, "torch": self._menu.microbatches}[self._problem.training.runtime]
        received = sum(each.forward for ends, each in sent.items() if ends[1] == index)
        received += sum(each.backward for ends, each in sent.items() if ends[0] == index)
        weights, gradients, optimizer = self._state(degree, stage.layers)
        items = {
            "weights_bytes": weights,
            "gradients_bytes": gradients,
            "optimizer_bytes": optimizer,
            "buffers_bytes": fixed - weights - gradients - optimizer,
            "activations_bytes": flight * kept,
            "communication_bytes": copies * received,
            "workspace_bytes": max(int(layers.workspace[layer]) for layer in stage.layers),
            "reserve_bytes": device.reserve_bytes,
        }
        return Memory(
            **items,
            in_flight=flight,
            awaiting_weight_gradient=0,
            total_bytes=sum(items.values()),
            capacity_bytes=device.memory_bytes,
        )

    @staticmethod
    def _state(degree: Degree, members: tuple[int, ...]) -> tuple[int, int, int]:
        """Give the bytes of weights, gradients and optimizer state, named weights included."""
        layers, named, inside = degree.instance.layers, degree.instance.weights, set(members)
        total = [
            sum(int(sizes[layer]) for layer in members) for sizes in (layers.weight, layers.gradient, layers.optimizer)
        ]
        for number, (holder,) in enumerate(named.layers):
            if int(holder) in inside:
                for place, sizes in enumerate((named.bytes, named.gradient_bytes, named.optimizer_bytes)):
                    total[place] += int(sizes[number])
        return total[0], total[1], total[2]

    def _boundary(self, ends: tuple[int, int], sent: Sent) -> Boundary:
        fabric, node = self._fabric, self._problem.cluster.expanded_nodes()[0].name
        return Boundary(
            from_stage=ends[0],
            to_stage=ends[1],
            tensors=tuple(each for number in sent.tensors for each in self._crossing(number)),
            forward_bytes=sent.forward,
            backward_bytes=sent.backward,
            path=() if fabric is None else (f"{node} fabric",),
            bandwidth_bytes_per_s=None if fabric is None else fabric.bandwidth_bytes_per_s,
            latency_s=0.0 if fabric is None else fabric.latency_s,
            transfer_s=self._transfer(sent.forward),
            backward_transfer_s=self._transfer(sent.backward),
        )

    def _crossing(self, number: int) -> list[CrossingTensor]:
        """Describe a tensor, and its gradient where it has one."""
        edges, tensors = self._menu.instance.edges, self._problem.model.tensors
        given = None if tensors is None else tensors[number]
        found = [
            CrossingTensor(
                name=edges.names[number],
                bytes=int(edges.forward_bytes[number]),
                shape=None if given is None else given.shape,
                dtype=None if given is None else given.dtype,
                stride=None if given is None else given.stride,
            )
        ]
        if edges.backward_bytes[number]:
            back = {"bytes": int(edges.backward_bytes[number]), "direction": "backward"}
            found.append(found[0].model_copy(update=back))
        return found


def _rate(amount: int, time: float) -> float | None:
    """Divide an amount by a time; None where that is no finite number."""
    rate = amount / time if time > 0 else float("inf")
    return rate if isfinite(rate) else None
