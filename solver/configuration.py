"""The exact search for plans of one number of stages (or of up to so many, where the front may be left out).

Chains are searched rank by rank first, over shortest ways, or over positions where many groups repeat. Then rounds:
prune with the best plan known, solve the program for something better, measure what it found, add the path that decided
its makespan as a cut. When nothing better is left, the best plan is proven.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from partita.solver.bounds import least_metrics
from partita.solver.branching import SMALL_PROGRAM, Trials, networks_worth
from partita.solver.checks import InternalError
from partita.solver.cuts import CutPool, starting_cuts
from partita.solver.deadline import Deadline, TimeOver
from partita.solver.domains import Domains, any_stage, pinned, within_window, within_work
from partita.solver.figures import MOST_TICKS
from partita.solver.first_plans import FirstPlans
from partita.solver.local_search import learn
from partita.solver.measure import graph_of
from partita.solver.plans import Judged, Plan, Signature
from partita.solver.position_program import MEMORY
from partita.solver.position_search import PositionSearch
from partita.solver.program.builder import Limits, Request, Setting, StageProgram
from partita.solver.pruning import Cutoffs, most_work, prune
from partita.solver.rank_search import RankSearch
from partita.solver.rank_sums import two_tracks
from partita.solver.seat_search import SeatSearch
from partita.solver.seat_space import SeatSpace, seat_space
from partita.solver.targets import WEIGHTED
from partita.solver.tools import Tools
from partita.solver.unsuited import Unsuited
from partita.solver.upper_bounds import longest_time
from partita.solver.warm_start import Frame

MOST_VARIABLES = 200_000
"""A program of more thresholds than this is not built: it would not be solved, and building it takes a minute."""

SECONDS_PER_VARIABLE, SLOWER_IN_GRAPHS = 2e-4, 3
"""Time to build a program and to hand it to a backend, per threshold; where tensors skip layers it takes longer."""


class Configuration:
    """Plans of ``num_stages`` stages, or of ``num_stages - optional`` to ``num_stages``.

    Attributes
    ----------
    bound
        Proven: every plan that was not excluded so far has at least this objective, as it is counted.
    """

    def __init__(self, tools: Tools, num_stages: int, optional: int = 0, known_cuts: CutPool | None = None) -> None:
        self.tools, self.num_stages, self.optional = tools, num_stages, optional
        self._known_cuts = known_cuts
        self._learned_from: Signature | None = None
        self._refused: list[Plan] = []
        self._searched_by_ranks: tuple[Signature, int] | None = None
        self.bound = 0

    @property
    def variant(self) -> int:
        """Which of the problem's schedules it has."""
        return self.tools.judge.variant

    # What follows is made when it is first needed: most numbers of stages are ruled out by arithmetic.

    @cached_property
    def _setting(self) -> Setting:
        judge = self.tools.judge
        graph = graph_of(judge.instance, self.num_stages)
        whole, postponed = graph.pipeline.moments.alone(self.num_stages)
        frame = Frame(graph.pipeline, self.optional, whole, postponed, judge.capacity)
        return Setting(judge.instance, judge.figures, judge.groups, graph, frame, judge.capacities)

    @property
    def _frame(self) -> Frame:
        return self._setting.frame

    @cached_property
    def _pool(self) -> CutPool | None:
        judge = self.tools.judge
        if not judge.sees_makespan:
            return None
        if self._known_cuts is not None:
            return self._known_cuts
        return CutPool(self._setting.graph)

    @cached_property
    def _seats(self) -> SeatSpace | None:
        judge = self.tools.judge
        if judge.minds("inter_node_bytes"):  # seats do not count what passes between nodes, the program does
            return None
        return seat_space(self.tools.view, self._frame, judge.capacities)

    @cached_property
    def _first(self) -> FirstPlans:
        return FirstPlans(self.tools, self._frame, self._pool, self._seats)

    def warm_up(self, deadline: Deadline) -> None:
        """Find first plans by dynamic programming and improve them by moves."""
        self._first.find(deadline)

    def among_equals(self, tools: Tools) -> "Configuration":
        """Give the search for plans of the same stages by another judge, with all cuts that are known."""
        return Configuration(tools, self.num_stages, self.optional, self._pool)

    def search(
        self,
        best: Judged | None,
        excluded: Sequence[Judged],
        deadline: Deadline,
        on_bound: Callable[[int], None],
    ) -> bool:
        """Look for plans better than ``best`` that are not excluded, until it is proven that there are none.

        Better plans go into the pool of plans.

        Returns
        -------
        bool
            Whether the proof was finished; ``bound`` then is the objective of the best plan (less the gap allowed).
        """
        tools = self.tools
        ranked = {each.signature for each in excluded}
        while not deadline.passed:
            known = tools.plans.best(ranked)
            if known is not None and (best is None or known.key < best.key):
                best = known
            cutoff = self._cutoff(best)
            if cutoff is not None and self.bound > cutoff:
                return True
            self._prepare(best, deadline)
            try:
                domains = self._domains(cutoff, deadline)
                if domains is None or domains.empty:
                    return self._proven(cutoff)
                if best is not None and self._by_ranks(best, excluded, domains, deadline, on_bound):
                    continue
                if self._seats is not None:
                    domains = self._domains(cutoff, deadline, self._seats)
                    if domains is None or domains.empty:
                        return self._proven(cutoff)
                if cutoff is not None:
                    self._bisect_bound(domains, cutoff, deadline)
            except TimeOver:
                return False
            outcome = self._round(domains, best, excluded, deadline, on_bound)
            if outcome is not None:
                return outcome and self._proven(cutoff)
        return False

    def _cutoff(self, best: Judged | None) -> int | None:
        """Give the largest objective that is worth finding; None for any."""
        if best is None:
            return None
        allowed = int(best.objective * self.tools.relative_gap)
        return best.objective - max(allowed, self.tools.backend.resolution(best.objective))

    def _proven(self, cutoff: int | None) -> bool:
        self.bound = max(self.bound, NOTHING if cutoff is None else cutoff + 1)
        return True

    def _prepare(self, best: Judged | None, deadline: Deadline) -> None:
        """Learn the paths that the neighbors of a new best plan have, once for each."""
        if self._pool is None or best is None or not self.tools.tactics.starting_cuts:
            return
        if self._known_cuts is not None:  # the search that found them has learned what the neighbors have to teach
            return
        ours = best.variant == self.tools.judge.variant and best.plan.num_stages == self.num_stages
        if ours and best.signature != self._learned_from:
            self._learned_from = best.signature
            starting_cuts(self._pool, best.measures.row, deadline)
            if self.tools.judge.groups.total_order:
                self._first.search.learn_from_neighbors(best, deadline)

    def _limits(self, cutoff: int | None) -> Limits:
        judge = self.tools.judge
        most = {**judge.limits, "peak_memory": judge.largest_memory}
        bounds = [*judge.kept, *([] if cutoff is None else [(judge.target, cutoff)])]
        for target, value in bounds:
            for metric, largest in target.most(value, least_metrics(judge, self.num_stages, target)):
                if largest < MOST_TICKS:  # what the others leave of a sum may be more than can be counted
                    most[metric] = min(largest, most.get(metric, largest))
        return Limits(
            iteration=most.get("iteration_time"),
            bottleneck=most.get("bottleneck_time"),
            memory=most["peak_memory"],
            devices=most.get("num_devices"),
            traffic=most.get("inter_node_bytes"),
            makespan=judge.makespan_limit(self._frame.pipeline.num_ranks),
            sums=tuple((target, value) for target, value in bounds if target.name == WEIGHTED),
        )

    def _domains(self, cutoff: int | None, deadline: Deadline, seats: SeatSpace | None = None) -> Domains | None:
        """Give what is left to decide for plans within the cutoff, and on their seats if known; None for nothing."""
        tools, judge = self.tools, self.tools.judge
        tools.counters.cuts = max(tools.counters.cuts, 0 if self._pool is None else len(self._pool))
        limits = self._limits(cutoff)
        devices = self._frame.pipeline.num_ranks * judge.instance.width
        if limits.impossible or (limits.devices is not None and devices > limits.devices):
            return None
        cutoffs = self._cutoffs(cutoff)
        frame = self._frame.within(limits.memory)
        groups = judge.groups
        domains = any_stage(groups, self.num_stages, tools.ancestry)
        if tools.tactics.pruning and groups.total_order:
            if seats is None:
                window = prune(tools.view, frame, cutoffs, self._pool, deadline)
            else:
                window = seats.window(cutoffs, self._pool, deadline, limits.memory)
            if window is None:
                return None
            domains = within_window(groups, window)
        elif tools.tactics.pruning and tools.ancestry is not None:
            most = most_work(tools.view, frame, cutoffs, self._pool)
            domains = within_work(tools.ancestry, tools.view.work, most, tools.view.state, frame.capacity)
        return pinned(domains, judge.pins)

    def _bisect_bound(self, domains: Domains, cutoff: int, deadline: Deadline) -> None:
        """Raise the bound to where pruning alone still shows that nothing is left, for the case that time runs out."""
        if int((domains.latest - domains.earliest).sum()) < WORTH_BISECTING or not self.tools.tactics.pruning:
            return
        low, high = self.bound, cutoff
        for _ in range(BISECTIONS):
            middle = (low + high) // 2
            left = self._domains(middle, deadline, self._seats)
            if left is None or left.empty:
                low = self.bound = middle + 1
            else:
                high = middle

    def _by_ranks(
        self,
        best: Judged,
        excluded: Sequence[Judged],
        domains: Domains,
        deadline: Deadline,
        on_bound: Callable[[int], None],
    ) -> bool:
        """Search over ranks or positions where that is possible, once for every best plan; tell whether it was."""
        tools, judge = self.tools, self.tools.judge
        this = best.signature, len(excluded)
        if self._pool is None or not tools.tactics.pruning or not judge.groups.total_order:
            return False
        if this == self._searched_by_ranks:
            return False
        self._searched_by_ranks = this
        part = deadline.part(RANKS_SHARE)
        trials = Trials(tools, self._pool, best, excluded)
        searches = self._searches(trials, int((domains.latest - domains.earliest).sum()))
        for search in searches:
            try:
                for bound in search.prove(trials.objective, self.bound, tools.backend.resolution, part):
                    self.bound = max(self.bound, bound)
                    on_bound(self.bound)
                    if self.bound > (self._cutoff(best) or 0):
                        break
            except Unsuited:
                continue
            except TimeOver:
                pass
            break
        return bool(searches)

    def _searches(self, trials: Trials, size: int) -> list[RankSearch | SeatSearch | PositionSearch]:
        """Give the searches that suit the schedule and the objective, the first first; of a program of some size."""
        tools, pipeline, pool = self.tools, self._frame.pipeline, self._pool
        assert pool is not None, "only where the makespan counts"
        given = (tools.view, self._frame, pool, trials, self._cutoffs)
        searches: list[RankSearch | SeatSearch | PositionSearch] = []
        two = two_tracks(pipeline) is not None
        long = two and size > SMALL_PROGRAM  # a short chain has few plans, which the others go through faster
        if tools.judge.metric == "iteration_time":
            if self._seats is not None:
                searches.append(SeatSearch(self._seats, *given, networks_worth(size)))
            if long:
                searches.append(PositionSearch(*given))
            if two or (pipeline.one_each and not self.optional):
                searches.append(RankSearch(*given, networks_worth(size)))
        elif tools.judge.metric == "peak_memory" and long:
            searches.append(PositionSearch(*given, MEMORY, NODES_FOR_MEMORY))
        return searches

    def _cutoffs(self, most: int | None) -> Cutoffs:
        """Give the largest makespan and bottleneck of plans with an objective up to so much, None for any."""
        judge, limits = self.tools.judge, self._limits(most)
        makespan = limits.iteration
        if makespan is not None:
            makespan -= judge.figures.step(judge.instance)
        if limits.makespan is not None:
            makespan = limits.makespan if makespan is None else min(makespan, limits.makespan)
        return Cutoffs(makespan, limits.bottleneck)

    def _round(
        self,
        domains: Domains,
        best: Judged | None,
        excluded: Sequence[Judged],
        deadline: Deadline,
        on_bound: Callable[[int], None],
    ) -> bool | None:
        """Solve the program once; True when nothing better exists, False when time ran out, None to go on."""
        tools, judge, cutoff = self.tools, self.tools.judge, self._cutoff(best)
        size = int((domains.latest - domains.earliest).sum())
        each = SECONDS_PER_VARIABLE * (1 if judge.groups.total_order else SLOWER_IN_GRAPHS)
        if size > MOST_VARIABLES or size * each > deadline.remaining:
            return False
        limits = self._limits(cutoff)
        most_time = longest_time(judge.instance, judge.figures, self.num_stages)
        largest = limits.iteration or limits.bottleneck or most_time
        scale = tools.backend.scale(largest, min(limits.memory, judge.most_memory(int(self._frame.whole.max()))))
        refused = (*(each.plan for each in excluded if each.variant == judge.variant), *self._refused)
        request = Request(judge.target, limits, refused, tuple(judge.apart))
        cuts = np.zeros((0, 0), dtype=np.int64) if self._pool is None else self._pool.rows
        program = StageProgram(self._setting, domains, cuts, request, scale, most_time)
        tools.counters.iterations += 1
        tools.counters.variables = max(tools.counters.variables, program.num_variables)
        if program.contradiction:
            return True
        unit = program.unit

        def raise_bound(value: float) -> None:
            self.bound = max(self.bound, min(int(value * unit), NOTHING if cutoff is None else cutoff + 1))
            on_bound(self.bound)

        outcome = tools.backend.solve(program.problem, deadline, raise_bound)
        if outcome.bound is not None:
            raise_bound(outcome.bound)
        if not outcome.found:
            return outcome.exhausted
        plan = program.decode()
        found, news = self._take(plan, deadline)
        if news:
            return None
        if found is None and tools.backend.exact:
            raise InternalError("the program's plan breaks a limit that the program keeps")
        if found is None or found.signature in {each.signature for each in excluded}:
            # A plan that breaks a limit by less than a float can tell, or a ranked one under other names: look on.
            self._refused.append(plan)
            return None
        return None if best is None or found.key < best.key else outcome.exhausted

    def _take(self, plan: Plan, deadline: Deadline) -> tuple[Judged | None, bool]:
        """Keep and improve a plan that the program found, and learn the path that decides its makespan.

        Gives the plan, unless it breaks a limit, and whether its path was news.
        """
        tools, judge = self.tools, self.tools.judge
        plans = [plan] if plan.option is None else [plan, replace(plan, option=None)]
        plans = judge.with_options(plans)
        measured = judge.measure_all(plans, with_paths=True)
        found = [judge.assess(each, measures) for each, measures in zip(plans, measured, strict=True)]
        for each in found:  # the options of the program first, then those that suit its stages best
            tools.plans.add(each)
        judged, news = found[0], False
        if self._pool is not None and plan.num_stages == self.num_stages:
            news = learn(self._pool, measured) > 0
        if judged is not None and tools.tactics.warm_start:
            self._first.improve(judged, judge.groups.total_order, deadline)
        return judged, news


NODES_FOR_MEMORY = 2_000
"""Nodes that the search over positions may look at for the least memory: a fixed effort, as it mostly breaks ties."""

RANKS_SHARE = 0.8
"""The part of the time left that the search by ranks may take."""

WORTH_BISECTING, BISECTIONS = 50, 7
"""Thresholds from which a program may take long, and how closely the bound is then found beforehand."""

NOTHING = 2**62
"""The bound of a configuration without any plan left."""
