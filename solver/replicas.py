"""What it costs to reduce the gradients of a stage over its replicas.

Replicas that share a node reduce over its fabric; where they are spread over several nodes, each of the g replicas of a
node then reduces its g-th part over the uplinks. The part that is hidden behind computing does not count.

References
----------
The usual decomposition of an all-reduce: g replicas on each of N nodes take 2 (g - 1) / g * bytes / fabric bandwidth +
2 (N - 1) / N * bytes / g / uplink bandwidth, and the latency of either path.
"""

import numpy as np

from partita.solver.arrays import IntArray, Times
from partita.solver.costs import LayerPlan, sum_by
from partita.solver.figures import Figures
from partita.solver.instance import Instance


def synchronised_bytes(instance: Instance, sizes: IntArray, gradients: IntArray) -> IntArray:
    """Give the bytes of gradient that belong to weights: in the weights' own width where gradients are not kept."""
    return gradients if instance.factors.gradient_bytes_per_weight_byte > 0 else sizes


def reduction(instance: Instance, figures: Figures, sizes: IntArray, place: IntArray | int) -> Times:
    """Give the time to reduce bytes over the replicas of a stage at a location, latency apart; shape as ``sizes``."""
    topology, near = instance.topology, instance.replicas_per_node
    shown = 1 - instance.problem.training.gradient_overlap
    inside = figures.reduction(sizes, near, topology.class_of[place, place], shown)
    far = instance.nodes_per_stage
    if far == 1:
        return inside
    total: Times = inside + figures.reduction(sizes, far, topology.across[place], shown / near)
    return total


def latency(instance: Instance, figures: Figures, place: IntArray) -> Times:
    """Give the latency of an all-reduce over the replicas of a stage at each location, shape as ``place``."""
    topology, near = instance.topology, instance.replicas_per_node
    shown = 1 - instance.problem.training.gradient_overlap
    total = figures.zeros(len(place))
    if near > 1:
        total = total + figures.delay(topology.class_of[place, place], shown)
    if instance.nodes_per_stage > 1:
        total = total + figures.delay(topology.across[place], shown)
    return total


def kinds_of_places(instance: Instance) -> IntArray:
    """Give a number for every location, equal where an all-reduce over replicas costs the same, shape (locations,)."""
    topology = instance.topology
    within = np.diagonal(topology.class_of)
    number: IntArray = np.unique(np.stack([within, topology.across]), axis=1, return_inverse=True)[1].ravel()
    return number


def longest_reduction(
    instance: Instance, figures: Figures, plan: LayerPlan, rank_of: IntArray, weight: IntArray, holder: IntArray
) -> float | int:
    """Give the longest all-reduce of a rank's gradients over its replicas.

    Parameters
    ----------
    rank_of
        The rank of every stage, shape (S,).
    weight, holder
        Which named weight is held by which rank.
    """
    rank, location = rank_of[plan.stage], plan.location
    costs = instance.ways.of(plan.kind(instance, rank_of), plan.option)
    layers = synchronised_bytes(instance, costs.weight, costs.gradient)
    weights = synchronised_bytes(instance, instance.weights.bytes, instance.weights.gradient_bytes)
    private = reduction(instance, figures, layers, location[rank])
    named = reduction(instance, figures, weights[weight], location[holder])
    size = len(location)
    each = sum_by(rank, private, size) + sum_by(holder, named, size) + latency(instance, figures, location)
    longest: float | int = each.max().item()
    return longest


def least_reduction(instance: Instance, figures: Figures, num_ranks: int) -> int:
    """Bound the longest all-reduce from below, in ticks: the mean over the ranks, every layer on its best path."""
    if instance.replicas == 1 or not instance.trains:
        return 0
    layers = synchronised_bytes(instance, instance.layers.weight, instance.layers.gradient)
    places = np.unique(kinds_of_places(instance), return_index=True)[1]
    total = np.min([reduction(instance, figures, layers, place) for place in places.tolist()], axis=0).sum()
    return -(-int(total) // num_ranks) + int(latency(instance, figures, places).min())
