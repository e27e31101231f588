"""Tests that what is left to decide contains every plan that is sought."""

from itertools import product
from random import Random

import numpy as np
import pytest

from oracle.small import Json, groups_of, small_problem
from partita.solver.domains import any_stage, find_ancestry, pinned, within_window, within_work
from partita.solver.grouping import Groups
from partita.solver.pruning import Window

NAMES = "abcdefg"


def random_groups(random: Random) -> Groups:
    """Draw a graph of single layers."""
    size = random.randint(2, 6)
    tensors: list[Json] = []
    for at in range(size - 1):
        readers = [name for name in NAMES[at + 1 : size] if random.random() < 0.4]
        if readers:
            tensors.append({"name": f"t{at}", "producer": NAMES[at], "consumers": readers, "bytes": 0})
    return groups_of(small_problem(NAMES[:size], model={"tensors": tensors}))


def assignments(groups: Groups, stages: int) -> list[tuple[int, ...]]:
    """Give every assignment in order; stages may be empty."""
    return [
        stage
        for stage in product(range(stages), repeat=len(groups))
        if all(stage[group] <= stage[after] for group, each in enumerate(groups.successors) for after in each)
    ]


@pytest.mark.parametrize("seed", range(60))
def test_work_and_memory_rule_out_no_plan(seed: int) -> None:
    """Tests that every assignment that keeps the loads and the memory lies within the domains."""
    random = Random(seed)
    groups = random_groups(random)
    ancestry = find_ancestry(groups)
    assert ancestry is not None
    stages = random.randint(1, 4)
    work, state = (np.array([random.randint(0, 6) for _ in range(len(groups))]) for _ in range(2))
    most_work = np.array([random.randint(3, 18) for _ in range(stages)])
    capacity = random.randint(5, 25)
    domains = within_work(ancestry, work, most_work, state, capacity)
    for stage in assignments(groups, stages):
        loads, held = (np.bincount(stage, weights=each, minlength=stages) for each in (work, state))
        if (loads <= most_work).all() and (held <= capacity).all():
            assert (domains.earliest <= stage).all() and (stage <= domains.latest).all()


def test_work_before_and_after() -> None:
    """Tests a chain of loads 3, 3, 3, 3 on stages of at most 6: two on each of two stages."""
    groups = groups_of(small_problem("abcd"))
    ancestry = find_ancestry(groups)
    assert ancestry is not None
    three = np.full(4, 3)
    domains = within_work(ancestry, three, np.array([6, 6]), np.zeros(4, dtype=np.int64), 10)
    assert (domains.earliest.tolist(), domains.latest.tolist()) == ([0, 0, 1, 1], [0, 0, 1, 1])
    assert within_work(ancestry, three, np.array([5, 6]), np.zeros(4, dtype=np.int64), 10).empty
    by_memory = within_work(ancestry, three, np.array([99, 99]), three, 6)
    assert (by_memory.earliest.tolist(), by_memory.latest.tolist()) == ([0, 0, 1, 1], [0, 0, 1, 1])


@pytest.mark.parametrize("seed", range(30))
def test_ancestry(seed: int) -> None:
    """Tests what comes before and after, and that the shorter order allows the same assignments."""
    groups = random_groups(Random(seed))
    ancestry = find_ancestry(groups)
    assert ancestry is not None
    assert (ancestry.before == ancestry.after.T).all()
    shorter = Groups(groups.members, groups.group_of, ancestry.successors, groups.total_order)
    assert assignments(shorter, 3) == assignments(groups, 3)
    for group in range(len(groups)):
        later = {after for stage in assignments(groups, 2) if stage[group] for after in np.flatnonzero(stage)}
        always = {
            other for other in later - {group} if all(stage[other] for stage in assignments(groups, 2) if stage[group])
        }
        assert set(np.flatnonzero(ancestry.after[group]).tolist()) == always


def test_pins_leave_one_stage() -> None:
    """Tests that a pinned group has its stage only, and a pin beyond the last stage leaves none."""
    domains = any_stage(groups_of(small_problem("abc")), 2, None)
    fixed = pinned(domains, {1: 1})
    assert (fixed.earliest.tolist(), fixed.latest.tolist()) == ([0, 1, 0], [1, 1, 1])
    assert not fixed.empty
    assert pinned(domains, {1: 2}).empty


def test_windows_of_starts() -> None:
    """Tests five groups whose second stage starts at 2 or 3, and whose third starts at 4."""
    groups = groups_of(small_problem("abcde"))
    window = Window(np.array([0, 2, 4, 5]), np.array([0, 3, 4, 5]), None)
    domains = within_window(groups, window)
    assert domains.earliest.tolist() == [0, 0, 0, 1, 2]
    assert domains.latest.tolist() == [0, 0, 1, 1, 2]
