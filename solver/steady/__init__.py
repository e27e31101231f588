"""Plans in steady state whose degrees of parallelism differ from stage to stage.

A stage is a set of layers that a boundary before and a boundary after it cut out of the model, on d replicas of t
devices. The N microbatches of the batch are shared by the replicas, which take turns. For one microbatch it needs

    blocking    (compute + transfers) / d + exchange / N
    overlapped  max(compute / d + exchange / N, transfer over either boundary, in either direction, / d)

where compute are the times of its layers at degree t, each by the recompute option chosen for it; transfers are, with
``direct``, all tensors that cross its boundaries, in both passes, with their resharding, and with ``relay`` all that
crosses either boundary, with a latency for each message; and exchange is latency + 2 (d - 1) / d x gradients /
bandwidth, twice the last part where ``gradient_exchange`` is ``half_duplex``, and 0 for d = 1; where gradients are
exchanged after every round of the replicas it counts by 1 / d, not 1 / N. The slowest stage is the bottleneck, which is
to be smallest.

Each of its devices holds weights, gradients, optimizer state, buffers, the largest workspace, the reserve, receive
buffers, and the activations of y = ceil(sum of d over this and all later stages / d) microbatches (1F1B). The sum of
d x t over all stages is at most the number of devices, the sum of d at most N, and every d divides N, unless gradients
are exchanged after every round.

References
----------
Narayanan et al., PipeDream, SOSP 2019 (replicated stages, states of a dynamic program); Tarnawski et al., Piper,
NeurIPS 2021 (tensor parallelism, memory and recompute within that program). Here the recompute choice is exact, and
the answer has a bound.
"""
