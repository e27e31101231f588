"""Configurations that differ in their number of microbatches alone: what they have in common is made once."""

from dataclasses import replace

from partita.models.choices import TrainingChoice
from partita.models.problem import Problem
from partita.solver.equal_layers import equal_layers
from partita.solver.event_graph import EventGraph
from partita.solver.grouping import Groups, group_layers
from partita.solver.instance import Instance, build_instance, refuse_uncountable


class Families:
    """Makes the instances of the configurations of a problem."""

    def __init__(self) -> None:
        self._first: dict[tuple[TrainingChoice, int], Instance] = {}
        self._groups: dict[TrainingChoice, Groups] = {}

    def instance(self, choice: TrainingChoice, problem: Problem) -> Instance:
        """Resolve a problem in a configuration, or take the arrays of one that has the same.

        Raises
        ------
        InvalidInput
            When the bytes of the model add up to more than can be counted.
        """
        family = _family(choice), problem.most_stages()
        if family not in self._first:
            made = self._first[family] = build_instance(problem)
            self._groups.setdefault(_family(choice), group_layers(made, equal_layers(problem)))
            return made
        return _with_microbatches(self._first[family], choice.num_microbatches)

    def groups(self, choice: TrainingChoice) -> Groups:
        """Give the groups of the layers in a configuration whose instance was made, equal ones in order."""
        return self._groups[_family(choice)]


def _family(choice: TrainingChoice) -> TrainingChoice:
    """Give a configuration without its number of microbatches."""
    return replace(choice, num_microbatches=0)


def _with_microbatches(instance: Instance, number: int) -> Instance:
    """Give the instance of the same problem with another number of microbatches."""

    def changed(problem: Problem) -> Problem:
        training = problem.training.model_copy(update={"num_microbatches": number})
        return problem.model_copy(update={"training": training})

    graphs: dict[int, EventGraph] = {}
    several = tuple(replace(case, problem=changed(case.problem), graphs=graphs) for case in instance.several)
    made = replace(instance, problem=changed(instance.problem), several=several, graphs={})
    for case in made.cases:
        refuse_uncountable(case)
    return made
