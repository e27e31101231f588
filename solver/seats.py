"""How ranks are seated on places, one after the other, but for names that nothing tells apart.

A *place* is a location of the topology or, where there are too many of them, all locations of one kind of device taken
together. A *seat* is what matters of the places used so far: how many ranks are on the place of the last one, and how
many on each of the others, of places that are alike in any order. A *turn* leads from a seat to the next one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from partita.solver.arrays import BoolArray, IntArray
from partita.solver.deadline import Deadline
from partita.solver.topology import Topology
from partita.solver.unsuited import TooManySteps

MOST_TURNS = 100_000
"""Turns of all ranks up to which seats are listed."""

STAYS = -1
"""Stands for the place of the last rank."""


Place = tuple[int, ...]
"""The locations of a place."""


@dataclass(frozen=True, slots=True)
class Sort:
    """Places that are alike.

    Attributes
    ----------
    places
        All of them.
    kind, room
        The kind of device, and how many ranks each place holds.
    """

    places: tuple[Place, ...]
    kind: int
    room: int


Seat = tuple[int, int, tuple[tuple[int, ...], ...]]
"""The sort of the last rank's place (-1 for none), its ranks, and those of all other places in use, by sort."""


@dataclass(frozen=True, slots=True)
class Turns:
    """All turns that one rank can take, shape (turns,) each.

    Attributes
    ----------
    source, target
        The seats before and after, as numbers.
    kind
        The kind of device.
    ride
        The way from the last rank to this one, as a number among ``Seating.rides``.
    sort, used
        The sort of place, and the ranks that it held before; ``STAYS`` for the place of the last rank.
    """

    source: IntArray
    target: IntArray
    kind: IntArray
    ride: IntArray
    sort: IntArray
    used: IntArray


class Seating:
    """The seats of all ranks.

    Parameters
    ----------
    topology, num_ranks, deadline
        The cluster, how many ranks there are, and until when they are seated.
    by_kind
        Whether locations are told apart by their kind of device alone.
    usable
        Which kinds every rank may be on, shape (R, kinds); None for any.

    Raises
    ------
    TooManySteps
        When there are more turns than are listed.
    TimeOver
        When the deadline passes.

    Attributes
    ----------
    exact
        Whether every place is one location, so that turns tell the paths between ranks.
    turns
        Of every rank.
    counts
        How many seats there are after r ranks, r from 0 to R.
    rides
        The classes of path that a way from one rank to the next may have; the first is that of the first rank: none.
    """

    def __init__(
        self,
        topology: Topology,
        num_ranks: int,
        deadline: Deadline,
        by_kind: bool = False,
        usable: BoolArray | None = None,
    ) -> None:
        self._topology, self.exact = topology, not by_kind
        self._sorts = _kinds(topology) if by_kind else _alike(topology)
        self._rides: dict[tuple[int, ...], int] = {(): 0}
        self._ride_of: dict[tuple[int, int, bool], int] = {}
        self.turns: list[Turns] = []
        self.counts = [1]
        seats: list[Seat] = [(-1, 0, ((),) * len(self._sorts))]
        left = MOST_TURNS
        for rank in range(num_ranks):
            numbers: dict[Seat, int] = {}
            rows: list[tuple[int, ...]] = []
            for source, seat in enumerate(seats):
                deadline.check()
                if len(rows) > left:
                    raise TooManySteps
                for target, sort, used in self._following(seat):
                    kind = self._sorts[sort].kind
                    if usable is None or usable[rank, kind]:
                        number, ride = numbers.setdefault(target, len(numbers)), self._ride(seat[0], sort, used)
                        rows.append((source, number, kind, ride, sort, used))
            left -= len(rows)
            self.turns.append(Turns(*np.array(rows, dtype=np.int64).reshape(-1, 6).T))
            self.counts.append(len(numbers))
            seats = list(numbers)
        self.rides = list(self._rides)

    def _following(self, seat: Seat) -> list[tuple[Seat, int, int]]:
        """Give the seats that can follow, each with the sort of the place and the ranks that it held before."""
        last, held, others = seat
        found = []
        if last >= 0 and held < self._sorts[last].room:
            found.append(((last, held + 1, others), last, STAYS))
        for number, sort in enumerate(self._sorts):
            begun = len(others[number]) + (last == number)
            unused = {0} if begun < len(sort.places) else set()
            for used in sorted(unused | {each for each in others[number] if each < sort.room}):
                rest = [list(each) for each in others]
                if used:
                    rest[number].remove(used)
                if last >= 0:
                    rest[last].append(held)
                found.append(((number, used + 1, tuple(tuple(sorted(each)) for each in rest)), number, used))
        return found

    def _ride(self, last: int, sort: int, used: int) -> int:
        """Give the number of the ways by which a rank on the last place reaches the next one."""
        if last < 0:
            return self._rides[()]
        known = last, sort, used == STAYS
        if known not in self._ride_of:
            here, there = self._sorts[last].places, self._sorts[sort].places
            other = here[0] if used == STAYS else there[-1] if last == sort else there[0]
            pairs = np.ix_(here[0], other)
            classes = np.unique(self._topology.class_of[pairs][self._topology.usable[pairs]])
            self._ride_of[known] = self._rides.setdefault(tuple(classes.tolist()), len(self._rides))
        return self._ride_of[known]

    def locations(self, turns: Sequence[int]) -> IntArray:
        """Give a location for every rank, shape (R,), for the turns that they take.

        Where a place is several locations, a rank is on the location of the one before it as long as there is room.
        """
        room = [len(each.slots) for each in self._topology.locations]
        chosen: list[int] = []
        for place in next(self._places(turns, [], {})):
            stays = chosen[-1:] if chosen and chosen[-1] in place else []
            location = next(each for each in (*stays, *place) if room[each])
            room[location] -= 1
            chosen.append(location)
        return np.array(chosen, dtype=np.int64)

    def every_location(self, turns: Sequence[int]) -> Iterator[IntArray]:
        """Give every choice of locations for the turns that ranks take, shape (R,) each, where places are locations.

        Turns tell how many ranks a place has held, but not which one it is of those that are alike and have held as
        many. Of places that were not used only the first is given: the others differ from it by name alone.
        """
        assert self.exact, "every place is one location"
        for places in self._places(turns, [], {}):
            yield np.array([location for (location,) in places], dtype=np.int64)

    def _places(self, turns: Sequence[int], chosen: list[Place], held: dict[Place, int]) -> Iterator[list[Place]]:
        """Give all choices of places for turns, from those chosen already and the ranks that these hold."""
        if len(chosen) == len(turns):
            yield chosen
            return
        rank, last = len(chosen), chosen[-1] if chosen else None
        sort, used = (int(each[turns[rank]]) for each in (self.turns[rank].sort, self.turns[rank].used))
        fitting = [each for each in self._sorts[sort].places if each != last and held.get(each, 0) == used]
        if used == STAYS and last is not None:
            fitting = [last]
        for place in fitting if used else fitting[:1]:
            yield from self._places(turns, [*chosen, place], held | {place: held.get(place, 0) + 1})


def _alike(topology: Topology) -> list[Sort]:
    """Sort locations by what tells them apart."""
    alike, found = topology.alike, []
    for first in np.unique(alike).tolist():
        places = tuple((int(place),) for place in np.flatnonzero(alike == first))
        location = topology.locations[first]
        found.append(Sort(places, location.kind, len(location.slots)))
    return found


def _kinds(topology: Topology) -> list[Sort]:
    """Take all locations of a kind together."""
    found = []
    for kind in np.unique(topology.kind_of).tolist():
        place = tuple(np.flatnonzero(topology.kind_of == kind).tolist())
        found.append(Sort((place,), kind, sum(len(topology.locations[each].slots) for each in place)))
    return found
