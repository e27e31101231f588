"""A planning problem: model, cluster, training set-up and what is asked."""

from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import model_validator

from partita.models.base import Faults, Many, Model, at_most
from partita.models.batching import rescaled, sized
from partita.models.choices import Configured, TrainingChoice, choice_of, spreads
from partita.models.cluster import Cluster
from partita.models.constraints import Constraints
from partita.models.degree_checks import no_room
from partita.models.demands import check_demands
from partita.models.document import read_json, validate
from partita.models.errors import InvalidInput
from partita.models.layer import RECOMPUTE_WORDS
from partita.models.naming import check_unique
from partita.models.objective import Limits, Objective
from partita.models.problem_checks import (
    check_batches,
    check_options,
    check_recompute,
    check_shares,
    check_sizes_of_scenarios,
    check_whole_backward,
)
from partita.models.profile import ModelProfile
from partita.models.quantities import as_choices
from partita.models.scenario import OverScenarios, Scenario
from partita.models.search import Search
from partita.models.stage_checks import check_stages, most_stages
from partita.models.training import Training
from partita.models.warnings import unit_warnings


class Problem(Model):
    """What is to be planned.

    Attributes
    ----------
    model, cluster, training
        The layers and their costs; the machines; how the model is trained.
    scenarios
        Kinds of batch that alternate, with shares that add up to 1. Memory must fit in all of them; options of layers,
        tensors and shared activations that name a scenario give what differs in it.
    over_scenarios
        ``expected``: times are the means over the scenarios, by share. ``worst``: they are those of the scenario with
        the longest iteration.
    objective, limits, constraints
        What a plan is judged by, what it must not exceed, and what else is demanded.
    search
        How long and how to search.
    """

    model: ModelProfile
    cluster: Cluster
    training: Training
    scenarios: Annotated[Many[Scenario], at_most(100, "scenarios")] = ()
    over_scenarios: OverScenarios = "expected"
    objective: Objective = "iteration_time"
    limits: Limits = Limits()
    constraints: Constraints = Constraints()
    search: Search = Search()

    def warnings(self) -> list[str]:
        """Name the figures that are valid but look like a mistake in the unit."""
        return unit_warnings(self.model, self.cluster)

    def choices(self) -> list[TrainingChoice]:
        """Give the configurations of training that the lists span and the cluster has room for, in their order.

        There are none where nothing fits.
        """
        training = self.training
        asked = None if training.replicas_per_node is None else as_choices(training.replicas_per_node)
        found, batches = [], training.batches()
        for tensor in as_choices(training.tensor_parallel):
            room = {
                replicas: spreads(self.cluster, tensor, replicas, asked)
                for replicas in as_choices(training.data_parallel)
                if tensor * replicas <= self.cluster.num_devices
            }
            for replicas, count, size in batches:
                found += [(tensor, replicas, each, count, size) for each in room.get(replicas, ())]
        return [TrainingChoice(schedule, *each) for schedule in training.schedules for each in found]

    def with_choice(self, choice: TrainingChoice) -> Self:
        """Give the same problem in one configuration of training alone, its costs those of the microbatch's size."""
        measured = as_choices(self.training.microbatch_size)[0]
        model = rescaled(self.model, choice.microbatch_size, measured)
        return self.model_copy(update={"training": self.training.with_choice(choice), "model": model})

    def in_scenario(self, scenario: Scenario) -> Self:
        """Give the same problem with batches of one kind alone."""
        own: dict[str, Any] = {"scenarios": (scenario.model_copy(update={"share": 1.0}),)}
        own["model"] = sized(self.model, scenario.name)
        if scenario.sequence_length is not None:
            own["training"] = self.training.model_copy(update={"sequence_length": scenario.sequence_length})
        return self.model_copy(update=own)

    def configured(self, plan: Configured) -> Self:
        """Give the same problem in the configuration of one of its plans.

        Raises
        ------
        InvalidInput
            When the problem does not span that configuration.
        """
        choices, chosen = self.choices(), choice_of(plan)
        if len(choices) == 1:
            return self.with_choice(replace(choices[0], schedule=plan.schedule))
        if chosen not in choices:
            detail = "the problem does not span the plan's configuration of schedule, degrees and batch; plan it again"
            raise InvalidInput.at("/plan", detail, None, "configuration")
        return self.with_choice(chosen)

    def most_stages(self) -> int:
        """Give the largest number of stages that a plan may have, by what is asked and by layers and devices."""
        asked = self.training.num_stages
        possible = most_stages(self.model, self.cluster, self.training)
        return possible if asked is None else min(possible, max(as_choices(asked)))

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = Faults()
        scenarios = [scenario.name for scenario in self.scenarios]
        check_unique(faults, ("scenarios",), "scenario", scenarios)
        check_shares(faults, [scenario.share for scenario in self.scenarios])
        check_options(faults, self.model, self.cluster.devices, scenarios)
        check_sizes_of_scenarios(faults, self.model, scenarios)
        check_stages(faults, self.model, self.cluster, self.training)
        if not self.training.per_stage_degrees:
            check_batches(faults, self.training, self.objective)
            if not faults.count and not self.choices():
                faults.add(("training",), no_room(self.cluster, self.training), code="too_few_devices")
        check_recompute(faults, self.model, self.constraints.recompute, RECOMPUTE_WORDS)
        check_whole_backward(faults, self.constraints.recompute, self.training.schedules)
        stages = max(1, self.most_stages())
        check_demands(faults, self.constraints, self.model.layer_index(), stages, self.model.buffers)
        faults.raise_if_any("Problem")
        return self


def read_problem(text: bytes | str) -> Problem:
    """Read a problem from JSON.

    Raises
    ------
    InvalidInput
        With every fault found, each with its JSON pointer, value and remedy.
    """
    return validate(Problem, read_json(text))
