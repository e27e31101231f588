"""How long the stages of a plan really take, against what was predicted and against as many layers on either stage.

Run as ``.venv/bin/python benchmarks/pipelines.py`` on two cores that have nothing else to do; needs torch, takes about
three minutes. A model is measured, planned for two ranks, materialized, and run by torch's schedule runtime, each rank
a process with one thread. The two splits are run in turn, in pairs.
"""

import datetime
import tempfile
import time
from functools import partial
from statistics import median

import torch
import torch.distributed as dist
from torch import nn

from partita.models.document import read_json
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.models.pytorch import capture
from partita.models.pytorch.capturing import Capture
from partita.models.pytorch.proof.launching import run_processes
from partita.models.pytorch.ready import ready_problem
from partita.models.pytorch.split import RunPlan, materialize
from partita.models.writers.torch_plan import read_torch
from partita.service.reports.exports import EXPORTS
from partita.solver.planner import plan_problem
from partita.solver.review import evaluate_plan

RANKS, MICROBATCHES, PAIRS, ITERATIONS, TRANSFERS = 2, 8, 5, 3, 20
WIDE, NARROW, ROWS, LENGTH = 512, 192, 4, 128


def uneven() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Give four wide encoder layers and eight narrow ones: equally many layers are no equal halves."""

    def layer(width: int) -> nn.Module:
        return nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)

    wide, narrow = [layer(WIDE) for _ in range(4)], [layer(NARROW) for _ in range(8)]
    return nn.Sequential(*wide, nn.Linear(WIDE, NARROW), *narrow), (torch.randn(ROWS, LENGTH, WIDE),)


def join(folder: str, rank: int) -> None:
    """Make this process one of two."""
    limit = datetime.timedelta(seconds=300)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS, timeout=limit)


def measure_transfers(folder: str, rank: int) -> float:
    """Give the bytes per second between the two processes, of a tensor as large as those between layers."""
    join(folder, rank)
    tensor, seconds = torch.randn(ROWS, LENGTH, WIDE), []
    for _ in range(TRANSFERS):
        dist.barrier()
        begin = time.perf_counter()
        for sender in range(RANKS):
            (dist.send if rank == sender else dist.recv)(tensor, 1 - rank)
        seconds.append((time.perf_counter() - begin) / 2)
    return tensor.nbytes / median(seconds)


def run_iterations(captured: Capture, plan: RunPlan, folder: str, place: int) -> list[float]:
    """Be one rank, and give the seconds of its iterations but the first, from one common start to the common end."""
    join(folder, place)
    pipeline = materialize(captured, plan)
    microbatches = [captured.inputs for _ in range(plan.num_microbatches)]
    seconds = []
    for _ in range(1 + ITERATIONS):
        for parameter in pipeline.parameters.values():
            parameter.grad = None
        dist.barrier()
        begin = time.perf_counter()
        pipeline.run(microbatches)
        dist.barrier()
        seconds.append(time.perf_counter() - begin)
    return seconds[1:]


def together(functions: list[partial[list[float]]] | list[partial[float]]) -> list[list[float]] | list[float]:
    """Run processes side by side."""
    return run_processes(functions, deadline=time.monotonic() + 300)


def iteration_s(captured: Capture, plan: RunPlan) -> float:
    """Run the iterations of a plan, and give the median of the seconds of the later rank."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [partial(run_iterations, captured, plan, folder, place) for place in plan.places]
        return median(map(max, zip(*together(ranks), strict=True)))


def runnable(problem: Problem, sizes: list[int] | None) -> tuple[RunPlan, float, list[int]]:
    """Give the best plan, or one of so many layers on each stage: how it runs, its predicted seconds, its layers."""
    answer = plan_problem(problem)
    if sizes is not None:
        answer = evaluate_plan(problem, GivenPlan(stage_sizes=tuple(sizes)))
    best = answer.candidates[0]
    plan = RunPlan.of(read_torch(read_json(EXPORTS["torch"](problem, best).encode())))
    return plan, best.metrics.iteration_time_s, [len(stage) for stage in plan.stages]


def main() -> None:
    """Print predicted and real seconds of the planned and of the uniform split."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    captured = capture(*uneven())
    with tempfile.TemporaryDirectory() as folder:
        bandwidth = min(together([partial(measure_transfers, folder, rank) for rank in range(RANKS)]))
    problem = ready_problem(
        captured,
        captured.profile(),
        devices=RANKS,
        schedule="1f1b",
        microbatches=MICROBATCHES,
        bandwidth_bytes_per_s=bandwidth,
        roofline=None,
    )
    layers = len(problem.model.layers)
    planned, predicted, sizes = runnable(problem, None)
    uniform, predicted_uniform, _ = runnable(problem, [layers - layers // 2, layers // 2])
    pairs = [(iteration_s(captured, planned), iteration_s(captured, uniform)) for _ in range(PAIRS)]
    real, real_uniform = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    ratio = median(other / own for own, other in pairs)
    print(f"torch {torch.__version__}, {RANKS} ranks of one thread, 1f1b, {MICROBATCHES} microbatches")
    print(f"{layers} layers, {bandwidth:.3g} bytes/s between the ranks; medians of {PAIRS} pairs\n")
    print("| split | layers | predicted, s | real, s | real / predicted |")
    print("|---|---|---|---|---|")
    print(f"| planned | {sizes} | {predicted:.4f} | {real:.4f} | {real / predicted:.3f} |")
    uneven_halves = [layers - layers // 2, layers // 2]
    print(
        f"| equally many layers | {uneven_halves} | {predicted_uniform:.4f} | {real_uniform:.4f} | "
        f"{real_uniform / predicted_uniform:.3f} |"
    )
    print(f"\nThe uniform split takes {ratio:.3f} times as long as the planned one, median of the pairs.")


if __name__ == "__main__":
    main()
