"""The referee: what a plan costs, computed from the problem alone in the user's own units.

Nothing leaves the solver that was not computed here.
"""

from functools import cached_property

import numpy as np

from partita.models.answer import Candidate
from partita.models.answer_plan import Boundary, CrossingTensor, Memory, Metrics, Stage, TiedWeight
from partita.models.scenario import ScenarioResult
from partita.models.training import single
from partita.solver.arrays import IntArray
from partita.solver.costs import LayerPlan, StageMemory, Traffic, held, sum_by
from partita.solver.figures import Figures, make_figures
from partita.solver.instance import Instance
from partita.solver.link_simulation import queued_makespan
from partita.solver.measure import Measures, graph_of, measure, measure_cases
from partita.solver.replicas import synchronised_bytes
from partita.solver.topology import NO_PATH


class Evaluator:
    """Evaluates plans of one problem.

    Parameters
    ----------
    instance
        The problem.

    Attributes
    ----------
    figures
        The problem's costs in seconds and bytes.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.figures: Figures = make_figures(instance)
        self._tensors = {tensor.name: tensor for tensor in instance.problem.model.tensors or ()}

    def measures(self, plan: LayerPlan) -> Measures:
        """Measure a plan in seconds and bytes."""
        return self.measure_all([plan])[0]

    def measure_all(self, plans: list[LayerPlan]) -> list[Measures]:
        """Measure plans of equally many stages in seconds and bytes, as ``measures`` does."""
        return measure(self.instance, self.figures, plans[0].num_stages, plans)

    def metrics(self, measures: Measures, location: IntArray) -> Metrics:
        """Give the metrics of a measured plan; ``location`` by rank."""
        training = self.instance.problem.training
        span = len(measures.load) * measures.makespan
        iteration = float(measures.iteration)
        queued = queueing_gap = None
        if training.queueing:
            queued = queued_makespan(self.instance, measures, location) + float(measures.once)
            queueing_gap = (queued - iteration) / queued if queued > 0 else 0.0
        return Metrics(
            iteration_time_s=iteration,
            tokens_per_second=measures.per_second(self._tokens(measures)),
            peak_memory_bytes=measures.peak_memory,
            bottleneck_time_s=float(measures.bottleneck),
            bubble_fraction=min(1.0, max(0.0, 1 - measures.busy / span)) if span > 0 else None,
            inter_node_bytes=measures.inter_node_bytes,
            num_devices=measures.num_devices,
            microbatches_per_second=measures.microbatches_per_second,
            queued_iteration_time_s=queued,
            queueing_gap=queueing_gap,
        )

    def _tokens(self, measures: Measures) -> float | int:
        """Give the tokens of an iteration: the mean over the scenarios, or those of the longest where that counts."""
        instance = self.instance
        return instance.tokens if measures.longest is None else instance.cases[measures.longest].tokens

    def candidate(self, plan: LayerPlan, rank: int, devices: list[tuple[str, ...]] | None = None) -> Candidate:
        """Give the full report of a plan; its ranks run on ``devices`` where these are given.

        Of several scenarios the stages and boundaries are those of the longest.
        """
        if self.instance.several:
            return self._over_scenarios(plan, rank, devices)
        return self._report(plan, rank, devices, self.measures(plan))

    def _report(
        self, plan: LayerPlan, rank: int, devices: list[tuple[str, ...]] | None, measures: Measures
    ) -> Candidate:
        """Give the full report of a measured plan, where there is one scenario at most."""
        training = self.instance.problem.training
        placed = self.instance.topology.devices(plan.location) if devices is None else devices
        return Candidate(
            rank=rank,
            schedule=self.instance.schedule,
            tensor_parallel=single(training.tensor_parallel),
            data_parallel=self.instance.replicas,
            replicas_per_node=self.instance.replicas_per_node,
            num_microbatches=self.instance.microbatches,
            microbatch_size=single(training.microbatch_size),
            metrics=self.metrics(measures, plan.location),
            stages=self._stages(plan, placed, measures),
            boundaries=self._boundaries(plan.stage, plan.location, measures),
            tied_weights=self._tied_weights(plan.stage, measures.memory[0].rank_of),
        )

    @cached_property
    def _each(self) -> list["Evaluator"]:
        """The evaluators of the scenarios, each by itself."""
        return [Evaluator(case) for case in self.instance.cases]

    def _over_scenarios(self, plan: LayerPlan, rank: int, devices: list[tuple[str, ...]] | None) -> Candidate:
        whole, scenarios = self.measures(plan), self.instance.problem.scenarios
        each = measure_cases(self.instance, [own.figures for own in self._each], plan, whole)
        results = tuple(
            ScenarioResult(name=scenario.name, share=scenario.share, metrics=own.metrics(measures, plan.location))
            for scenario, own, measures in zip(scenarios, self._each, each, strict=True)
        )
        longest = max(range(len(each)), key=lambda number: results[number].metrics.iteration_time_s)
        report = self._each[longest]._report(plan, rank, devices, each[longest])
        metrics, name = self.metrics(whole, plan.location), scenarios[longest].name
        return report.model_copy(update={"metrics": metrics, "scenario": name, "scenarios": results})

    def _stages(self, plan: LayerPlan, devices: list[tuple[str, ...]], measures: Measures) -> tuple[Stage, ...]:
        instance, stage = self.instance, plan.stage
        names = np.array([layer.name for layer in instance.problem.model.layers], dtype=object)
        (times,), (memory,) = measures.times, measures.memory
        rank_of = memory.rank_of
        layers = instance.ways.of(plan.kind(instance, rank_of), plan.option)
        kinds = instance.topology.kind_of[plan.location]
        option = np.array([name or "" for name in instance.ways.options], dtype=object)[plan.option]
        weight_gradient = sum_by(stage, layers.weight_gradient, len(rank_of))
        return tuple(
            Stage(
                index=index,
                rank=rank,
                devices=devices[rank],
                device=instance.topology.kinds[int(kinds[rank])],
                layers=tuple(names[stage == index]),
                recompute=tuple(names[(stage == index) & layers.recomputed]),
                options=dict(zip(names[chosen], option[chosen], strict=True)),
                forward_s=float(times.forward[index]),
                backward_s=float(times.backward[index]),
                weight_gradient_s=float(weight_gradient[index]),
                memory=_memory(memory, index, instance.topology.devices_by_kind[int(kinds[rank])].memory_bytes),
            )
            for index, rank in enumerate(rank_of.tolist())
            for chosen in [(stage == index) & layers.recomputed & instance.ways.choosable]
        )

    def _boundaries(self, stage: IntArray, location: IntArray, measures: Measures) -> tuple[Boundary, ...]:
        """Report neighbors, and other pairs of stages between which something is sent."""
        instance, moved = self.instance, measures.times[0].moved
        graph, place = graph_of(instance, int(stage.max()) + 1), location[measures.memory[0].rank_of]
        found = []
        for pair, (first, second) in enumerate(graph.pairs.tolist()):
            chosen = np.flatnonzero(moved.traffic.pair == pair)
            if second > first + 1 and not len(chosen):
                continue
            far = first if instance.routing == "host" else second
            path = NO_PATH if graph.local[pair] else instance.topology.path(int(place[first]), int(place[far]))
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
            stride=None if given is None else given.stride,
            direction="backward" if back else "forward",
        )

    def _tied_weights(self, stage: IntArray, rank_of: IntArray) -> tuple[TiedWeight, ...]:
        weights = self.instance.weights
        weight, holder = held(weights, stage, np.arange(len(rank_of)))
        sizes = synchronised_bytes(self.instance, weights.bytes, weights.gradient_bytes)
        found = []
        for number, name in enumerate(weights.names):
            if len(weights.layers[number]) > 1:
                stages = tuple(int(each) for each in holder[weight == number])
                ranks = len(np.unique(rank_of[list(stages)]))
                synchronised = int(sizes[number]) if self.instance.trains and ranks > 1 else 0
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
        awaiting_weight_gradient=int(memory.postponed[index]),
        communication_bytes=int(memory.communication[index]),
        workspace_bytes=int(memory.workspace[index]),
        reserve_bytes=int(memory.reserve[index]),
        total_bytes=int(memory.total[index]),
        capacity_bytes=capacity,
    )
