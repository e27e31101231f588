"""One plan in seconds, where transfers that share a link wait for each other: an event-driven simulation.

Every rank runs its actions in order, and the transfers of one pair of stages in one direction (a *lane*) go one at a
time, as in the event graph. Besides, links are shared:

- Between nodes a transfer occupies the uplink of the sender's node in outgoing direction and that of the receiver's
  node in incoming direction. The two directions of an uplink do not disturb each other.
- An explicit link, of nodes or of devices, takes the place of both uplinks. Its two directions are separate, too.
- Inside a node transfers over the fabric share nothing: the fabric is taken to be a switch that is fast enough.
- The replicas and the devices of a stage are not simulated one by one: what they send is one transfer.

A transfer occupies all of its links from its start to its end, latency included, at the bandwidth of its path. It
comes to them when its action ends, and starts as soon as the transfer before it in its lane has ended and its links are
free. Whoever came first goes first; at one time, the transfer of the pair, then of the direction, listed first. A
transfer that waits for one of its links does not hold the other: a later one may take that meanwhile, so that no link
is idle while a transfer could use it. A transfer that takes no time needs no link.

Every wait of the event graph is one here as well, so nothing happens earlier than there, and where no link is shared
everything happens at the same time, to the last bit. A bound that is proven for the time without queues therefore holds
for the queued time of every plan: the queued time of the best plan is within its gap of the least that is possible.
"""

from collections import Counter
from heapq import heappop, heappush

import numpy as np

from partita.solver.arrays import FloatArray, IntArray
from partita.solver.event_graph import BACKWARD, FORWARD, EventGraph
from partita.solver.instance import Instance
from partita.solver.measure import Measures, graph_of
from partita.solver.topology import Topology

Lane = tuple[int, int]
"""The number of a pair of stages, and the direction."""

Links = dict[Lane, tuple[str, ...]]
"""The links, each in one direction, that the transfers of a lane occupy; lanes that need none may be left out."""


def queued_makespan(instance: Instance, measures: Measures, location: IntArray) -> float:
    """Give the makespan of a plan whose transfers queue for shared links.

    Parameters
    ----------
    instance
        The problem, with overlapped transfers.
    measures, location
        The plan as measured in seconds, and the location of every rank.
    """
    (times,) = measures.times
    graph = graph_of(instance, times.passes.shape[1])
    links = shared_links(instance, graph, location, times.row)
    if not links:
        return float(measures.makespan)
    _, end = simulate(graph, times.row, links)
    return float(end.max())


def shared_links(instance: Instance, graph: EventGraph, location: IntArray, times: FloatArray) -> Links:
    """Give the links that several lanes need; a lane alone on a link never waits for it."""
    if instance.routing == "host":  # the devices of the one node reach the host by their fabric
        return {}
    place = location[graph.pipeline.rank_of]
    needed: Links = {}
    for pair, (first, second) in enumerate(graph.pairs.tolist()):
        if graph.local[pair]:
            continue
        for direction, ends in ((FORWARD, (first, second)), (BACKWARD, (second, first))):
            if times[graph.transfer_column(direction) + pair] > 0:
                sender, receiver = (int(place[stage]) for stage in ends)
                needed[pair, direction] = links_between(instance.topology, sender, receiver)
    lanes = Counter(link for links in needed.values() for link in links)
    shared = {lane: tuple(link for link in links if lanes[link] > 1) for lane, links in needed.items()}
    return {lane: links for lane, links in shared.items() if links}


def links_between(topology: Topology, sender: int, receiver: int) -> tuple[str, ...]:
    """Name the links in the direction from one location to another; none for the fabric of a node."""
    names = topology.path(sender, receiver).names
    if len(names) == 2:
        return f"{names[0]} out", f"{names[1]} in"
    node = topology.locations[sender].node
    if node == topology.locations[receiver].node and names in ((), (f"{node} fabric",)):
        return ()
    return names  # an explicit link is named from sender to receiver


def simulate(graph: EventGraph, times: FloatArray, links: Links) -> tuple[FloatArray, FloatArray]:
    """Give when every node of ``graph.nodes`` starts and ends.

    Parameters
    ----------
    graph
        The event graph, with overlapped transfers.
    times
        The times of a plan, shape (C,).
    links
        What the lanes share.
    """
    assert not graph.blocking, "blocking transfers are refused by support.py"
    simulation = _Simulation(graph, times, links)
    simulation.run()
    return np.array(simulation.start), np.array(simulation.end)


class _Simulation:
    """Events in order of time.

    Only transfers that need links wait for events; whatever else is ready ends at a time that is known at once.
    """

    def __init__(self, graph: EventGraph, times: FloatArray, links: Links) -> None:
        nodes = graph.nodes
        size = graph.num_nodes
        self.duration: list[float] = graph.durations(times).tolist()
        self.start = [0.0] * size
        self.end = [0.0] * size
        self._lacking: list[int] = np.bincount(nodes.target, minlength=size).tolist()
        by_source = np.argsort(nodes.source, kind="stable")
        self._following: list[int] = nodes.target[by_source].tolist()
        self._first: list[int] = np.searchsorted(nodes.source[by_source], np.arange(size + 1)).tolist()
        self._lanes: list[Lane] = list(zip(nodes.pair.tolist(), nodes.direction.tolist(), strict=True))
        self._action = _senders(graph)
        numbers: dict[str, int] = {}
        self._links: list[tuple[int, ...]] = [
            tuple(numbers.setdefault(name, len(numbers)) for name in links.get(lane, ())) if duration > 0 else ()
            for lane, duration in zip(self._lanes, self.duration, strict=True)
        ]
        self._busy = [False] * len(numbers)
        self._waiting: list[set[int]] = [set() for _ in numbers]
        self._events: list[tuple[float, bool, int]] = []  # time, whether the transfer ends (or has come), transfer

    def run(self) -> None:
        """Go from one event to the next until everything has ended."""
        self._follow([node for node, lacking in enumerate(self._lacking) if lacking == 0])
        while self._events:
            now, changed = self._events[0][0], set()
            while self._events and self._events[0][0] == now:
                _, ends, transfer = heappop(self._events)
                for link in self._links[transfer]:
                    if ends:
                        self._busy[link] = False
                        changed |= self._waiting[link]
                    else:
                        self._waiting[link].add(transfer)
                        changed.add(transfer)
            for transfer in sorted(changed, key=self._turn):
                if not any(self._busy[link] for link in self._links[transfer]):
                    self._send(transfer, now)
        assert not any(self._lacking), "a transfer holds no link while it waits, so nothing gets stuck"

    def _turn(self, transfer: int) -> tuple[float, Lane, int]:
        """Give the key by which waiting transfers go: when they came, then a fixed order."""
        return self.end[self._action[transfer]], self._lanes[transfer], transfer

    def _send(self, transfer: int, now: float) -> None:
        """Start a transfer whose links are free."""
        for link in self._links[transfer]:
            self._busy[link] = True
            self._waiting[link].remove(transfer)
        self.start[transfer] = now
        self._end(transfer)
        heappush(self._events, (self.end[transfer], True, transfer))
        ready: list[int] = []
        self._release(transfer, ready)
        self._follow(ready)

    def _follow(self, ready: list[int]) -> None:
        """Let nodes happen that wait for no other node, and all that follows from them."""
        while ready:
            node = ready.pop()
            if self._links[node]:
                heappush(self._events, (self.start[node], False, node))
            else:
                self._end(node)
                self._release(node, ready)

    def _end(self, node: int) -> None:
        self.end[node] = self.start[node] + self.duration[node]

    def _release(self, node: int, ready: list[int]) -> None:
        """Tell what waits for a node when it ends; add to ``ready`` what then waits for no other."""
        end = self.end[node]
        for place in range(self._first[node], self._first[node + 1]):
            following = self._following[place]
            self.start[following] = max(self.start[following], end)
            self._lacking[following] -= 1
            if self._lacking[following] == 0:
                ready.append(following)


def _senders(graph: EventGraph) -> list[int]:
    """Give the action that every transfer belongs to, by node; an action is its own."""
    nodes = graph.nodes
    sender = np.arange(graph.num_nodes)
    sending = (nodes.source < nodes.num_actions) & (nodes.target >= nodes.num_actions)
    sender[nodes.target[sending]] = nodes.source[sending]
    found: list[int] = sender.tolist()
    return found
