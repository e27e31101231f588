"""Measure the planner and write benchmarks/results.md.

Every chain is planned twice in a row: as Partita does it, and by the plain program without warm start, pruning and
starting cuts. Straight pipelines are planned by Partita and by a peer, our own writing of PipeDream's method. What
counts is the ratio; the seconds are those of the machine named in the file. At the end the service cancels and stops
solves.
"""

import argparse
import json
import os
import platform
import statistics
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from time import monotonic

import numpy as np
import pipedream_peer
from equal_blocks import equal_blocks
from instances import chain, lengths, mixed, recomputing, scheduled
from repeated import KINDS as KINDS_OF_ROWS
from repeated import repeated
from serving import endings

from partita.models.answer import Answer
from partita.models.document import validate
from partita.models.problem import Problem
from partita.models.readers import READERS
from partita.models.schedule import Schedule
from partita.models.search import Search
from partita.solver.deadline import Deadline
from partita.solver.event_graph import EventGraph
from partita.solver.pipeline import arrange
from partita.solver.planner import plan_problem
from partita.solver.session import Session
from partita.solver.tools import Tactics

HERE = Path(__file__).parent
SHARED = HERE.parent.parent / "shared" / "data"
BATCHES = (256, 512, 1024)
"""Sequences of an iteration of the equal blocks."""
SIZES = ((98, 16, 64, 1.0), (194, 32, 128, 10.0), (386, 64, 256, 60.0), (1000, 64, 256, 60.0))
"""Layers, stages, microbatches, and the seconds that a proof may take."""
STRAIGHT = (
    ("vgg16", 4, 1.25e9),
    ("vgg16", 8, 3e10),
    ("alexnet", 4, 1.25e9),
    ("resnet18", 4, 1.25e9),
    ("resnet50", 4, 1.25e9),
    ("resnet50", 8, 3e10),
    ("gnmt", 4, 1.25e9),
    ("gnmt", 8, 3e10),
)
"""PipeDream profile, machines, and bytes per second between two of them."""
DEGREES = (
    ("bert32a100", 8, 8, 0.16585575),
    ("bert32a100", 8, 32, 0.0415154504),
    ("bert32a100", 2, 32, 0.0665495),
    ("bert32a100", 8, 64, 0.0202005503),
    ("bert32a100", 80, 64, 0.015650178),
    ("resnet", 8, 8, 63.4335366),
    ("resnet", 4, 16, 35.3334375),
    ("resnet", 2, 32, 24.6258985),
)
"""Piper's input, GiB of memory, devices, and the time per sample of the plan that Piper's own program gives."""
SCHEDULED = ((66, 4, 16), (98, 16, 64))
"""Layers, ranks and microbatches of the chains for every schedule."""
KINDS = (
    "gpipe", "1f1b", "zb_h1", "zb_h2", "interleaved_1f1b", "interleaved_zb", "looped_bfs", "zb_v", "dualpipe_v",
)  # fmt: skip
PACKAGES = ("ortools", "highspy", "pulp", "numpy", "pydantic")


@dataclass(frozen=True)
class Run:
    """What one search took and showed."""

    seconds: float
    answer: Answer

    def __str__(self) -> str:
        """Give the result as a cell of a table."""
        if self.answer.status == "optimal":
            return f"proven in {self.seconds:.2f} s"
        gap = "no plan" if self.answer.relative_gap is None else f"gap {self.answer.relative_gap:.3%}"
        return f"{gap} after {self.seconds:.0f} s"


def planned(problem: Problem) -> Run:
    """Plan as Partita does it."""
    started = monotonic()
    answer = plan_problem(problem)
    return Run(monotonic() - started, answer)


def plainly(problem: Problem) -> Run:
    """Plan by the program alone."""
    started = monotonic()
    session = Session(problem, Tactics(warm_start=False, pruning=False, starting_cuts=False))
    answer = session.answer(Deadline.after(problem.search.time_limit_s))
    return Run(monotonic() - started, answer)


def chains(repeats: int, plain_seconds: float) -> list[str]:
    """Give the table of the chains."""
    rows = [
        "| layers x stages x microbatches | goal | Partita, median | its range | plain program | plain / Partita |",
        "|---|---|---|---|---|---|",
    ]
    for layers, stages, microbatches, goal in SIZES:
        runs = [planned(chain(layers, stages, microbatches, seed, 1, 60.0)) for seed in range(repeats)]
        plain = plainly(chain(layers, stages, microbatches, 0, 1, plain_seconds))
        seconds = [run.seconds for run in runs]
        middle = sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]
        more = "" if plain.answer.status == "optimal" else "more than "
        ratio = f"{more}{plain.seconds / runs[0].seconds:.0f}"
        gaps = [run.answer.relative_gap or 0.0 for run in runs if run.answer.status != "optimal"]
        spread = f"{min(seconds):.2f} to {max(seconds):.2f} s"
        if gaps:
            spread += f", {len(gaps)} of {len(runs)} unproven, gap at most {max(gaps):.3%}"
        target = f"proof in {goal:g} s" if layers < 1000 else f"gap of 0.05 % in {goal:g} s"
        rows.append(f"| {layers} x {stages} x {microbatches} | {target} | {middle} | {spread} | {plain} | {ratio} |")
        print(rows[-1], flush=True)
    return rows


def schedules(repeats: int) -> list[str]:
    """Give the table of all schedules on two sizes of chain."""
    sizes = " | ".join(f"{layers} x {ranks} x {microbatches}, range" for layers, ranks, microbatches in SCHEDULED)
    rows = [f"| schedule | {sizes} |", f"|---|{'---|' * len(SCHEDULED)}"]
    for kind in KINDS:
        cells = []
        for layers, ranks, microbatches in SCHEDULED:
            runs = [planned(scheduled(kind, layers, ranks, microbatches, seed, 60.0)) for seed in range(repeats)]
            runs.sort(key=lambda run: run.seconds)
            cells.append(f"{runs[len(runs) // 2]} ({runs[0].seconds:.2f} to {runs[-1].seconds:.2f} s)")
        rows.append(f"| {kind} | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    return rows


def graphs() -> list[str]:
    """Give the time to build the largest event graph and to find its critical path."""
    lines = []
    for kind in ("interleaved_1f1b", "zb_v"):
        started = monotonic()
        graph = EventGraph(arrange(validate(Schedule, {"kind": kind}), 128, 512), skipping=False, blocking=False)
        times = np.random.default_rng(0).integers(100, 200, (1, graph.num_columns))
        graph.critical_paths(times)
        lines.append(
            f"- {kind}, 64 ranks x 2 chunks x 512 microbatches: graph of {graph.num_nodes} nodes and its critical path "
            f"in {monotonic() - started:.2f} s"
        )
        print(lines[-1], flush=True)
    return lines


def peers(solvers: tuple[str, ...]) -> list[str]:
    """Give the table of the dnn-partitioning throughput inputs; empty where they are absent."""
    folder = SHARED / "dnn-partitioning" / "throughput-inputs"
    if not folder.is_dir():
        return []
    rows = [f"| input | optimum, ms | {' | '.join(solvers)} |", f"|---|---|{'---|' * len(solvers)}"]
    for path in sorted(folder.glob("*/*.json")):
        problem = READERS["dnn-partitioning"].read(path.read_bytes())
        cells, best = [], None
        for solver in solvers:
            data = problem.model_dump(mode="json")
            data["search"] = {"candidates": 1, "time_limit_s": 120, "solver": solver}
            run = planned(validate(Problem, data))
            cells.append(str(run))
            if best is None and run.answer.candidates:
                best = run.answer.candidates[0].metrics.bottleneck_time_s * 1e3
        rows.append(f"| {path.parent.name}/{path.stem} | {best:.10g} | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    return rows


def straight(repeats: int) -> list[str]:
    """Give the table of PipeDream's profiles, one machine for each stage; empty where they are absent."""
    folder = SHARED / "pipedream"
    if not folder.is_dir():
        return []
    rows = [
        "| profile | machines | bandwidth, bytes/s | stage time, s: peer | Partita | median, s: peer | Partita "
        "| peer / Partita | note |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for profile, machines, bandwidth in STRAIGHT:
        text = (folder / f"{profile}.txt").read_bytes()
        graph = pipedream_peer.read(text)
        # The peer counts an activation and its gradient over one boundary as one transfer: half the bandwidth for each.
        options = {"devices": machines, "bandwidth_bytes_per_s": bandwidth / 2, "memory_bytes": "1PiB"}
        problem = READERS["pipedream"].read(text, **options)
        problem = problem.model_copy(update={"search": Search(candidates=1, time_limit_s=60.0)})
        peer_seconds, runs, peer_s = [], [], 0.0
        for _ in range(repeats):
            started = monotonic()
            peer_s = pipedream_peer.stage_time(graph, machines, bandwidth)
            peer_seconds.append(monotonic() - started)
            runs.append(planned(problem))
        peer, ours = statistics.median(peer_seconds), statistics.median(run.seconds for run in runs)
        answer = runs[-1].answer
        best = f"{answer.candidates[0].metrics.bottleneck_time_s:.9f}" if answer.candidates else "no plan"
        if any(run.answer.status != "optimal" for run in runs):
            best += ", unproven"
        note = "peer under a second" if peer < 1 else ""
        rows.append(
            f"| {profile} | {machines} | {bandwidth:.3g} | {peer_s:.9f} | {best} | {peer:.4f} | {ours:.4f} "
            f"| {peer / ours:.3f} | {note} |"
        )
        print(rows[-1], flush=True)
    return rows


def degrees() -> list[str]:
    """Give the table of Piper's inputs, with degrees for each stage; empty where they are absent."""
    folder = SHARED / "piper"
    if not folder.is_dir():
        return []
    rows = ["| input | GiB | devices | time per sample: Piper | Partita | Piper / Partita | result |"]
    rows += ["|---|---|---|---|---|---|---|"]
    for name, memory, devices, theirs in DEGREES:
        text = (folder / f"{name}.json").read_bytes()
        options = {"devices": devices, "memory_bytes": f"{memory}GiB", "bandwidth_bytes_per_s": 25.0 * 2**30}
        problem = READERS["piper"].read(text, **options)
        run = planned(problem.model_copy(update={"search": Search(candidates=1, time_limit_s=60.0)}))
        cells = "no plan |"
        if run.answer.candidates:
            ours = run.answer.candidates[0].metrics.bottleneck_time_s
            cells = f"{ours:.9g} | {theirs / ours:.6f}"
        rows.append(f"| {name} | {memory} | {devices} | {theirs:.9g} | {cells} | {run} |")
        print(rows[-1], flush=True)
    return rows


def ways() -> list[str]:
    """Give the table of chains on two kinds of device, and with recompute to choose."""
    fast, slow = "fast", "slow"
    cases = (
        ("66 layers on 4 fast, 4 slow", "proof in 2 s", mixed((fast, slow), 66, 4, 0, 60.0)),
        ("66 layers on 4 fast, 4 slow, 4 slow", "gap of 0.5 % in 60 s", mixed((fast, slow, slow), 66, 4, 0, 60.0)),
        ("98 layers on 4 nodes of 8", "gap of 3 % in 120 s", mixed((fast, slow, fast, slow), 98, 8, 0, 120.0)),
        ("98 layers x 8 stages, recompute chosen", "proof in 10 s", recomputing("choose", 98, 8, 0, 60.0)),
        ("the same, all recomputed", "not faster", recomputing("full", 98, 8, 0, 60.0)),
    )
    rows = ["| chain | goal | iteration time, s | result |", "|---|---|---|---|"]
    for name, goal, problem in cases:
        run = planned(problem)
        plans = run.answer.candidates
        value = f"{plans[0].metrics.iteration_time_s:.6g}" if plans else "no plan"
        rows.append(f"| {name} | {goal} | {value} | {run} |")
        print(rows[-1], flush=True)
    return rows


def scenarios() -> list[str]:
    """Give the table of chains with three lengths of sequence, beside the same chains with one."""
    rows = ["| layers x stages x microbatches | one length | three, mean | three, longest |", "|---|---|---|---|"]
    for layers, stages, microbatches in [size[:3] for size in SIZES[:2]]:
        alone = planned(chain(layers, stages, microbatches, 0, 1, 60.0))
        mean, longest = (
            planned(lengths(over, layers, stages, microbatches, 0, 60.0)) for over in ("expected", "worst")
        )
        rows.append(f"| {layers} x {stages} x {microbatches} | {alone} | {mean} | {longest} |")
        print(rows[-1], flush=True)
    return rows


def configurations() -> list[str]:
    """Give the table of degrees to choose from: 128 equal blocks on 512 devices, one batch after the other."""
    rows = [
        "| batch | configurations | goal | result | tensor x data x stages | microbatches | iteration time, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for batch in BATCHES:
        problem = equal_blocks(128, 64, batch, 60.0)
        run = planned(problem)
        best = run.answer.candidates[0]
        shape = f"{best.tensor_parallel} x {best.data_parallel} x {len(best.stages)}"
        rows.append(
            f"| {batch} | {len(run.answer.schedules)} | proof in 60 s | {run} | {shape} | {best.num_microbatches} "
            f"| {best.metrics.iteration_time_s:.6f} |"
        )
        print(rows[-1], flush=True)
    return rows


def equal_rows() -> list[str]:
    """Give the table of equal blocks in a row: what 128 of them cost more than 16."""
    rows = ["| a block | what is hard | 16 blocks | 128 blocks | 128 / 16 |", "|---|---|---|---|---|"]
    for graph in (False, True):
        for kind in KINDS_OF_ROWS:
            few, many = (planned(repeated(blocks, graph, kind, 20.0)) for blocks in (16, 128))
            block = "six operators" if graph else "one layer"
            proven = few.answer.status == many.answer.status == "optimal"
            ratio = f"{many.seconds / few.seconds:.1f}" if proven else "unknown"
            rows.append(f"| {block} | {kind} | {few} | {many} | {ratio} |")
            print(rows[-1], flush=True)
    return rows


def ranking(repeats: int) -> list[str]:
    """Give the time of five candidates against one, on the smallest chain."""
    pairs = []
    for _ in range(repeats):
        one, five = (planned(chain(*SIZES[0][:3], 0, candidates, 60.0)).seconds for candidates in (1, 5))
        pairs.append((one, five))
    ratio = statistics.median(five / one for one, five in pairs)
    line = f"Five ranked candidates of the first chain take {ratio:.1f} times as long as the best one alone."
    print(line)
    return [line]


def machine() -> str:
    """Name the machine and the versions."""
    cores = len(os.sched_getaffinity(0))
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"{cores} cores ({platform.machine()}), Python {platform.python_version()}, {versions}; {date.today()}"


def main() -> None:
    """Run all benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="chains of every size; runs of every straight pipeline")
    parser.add_argument("--plain-seconds", type=float, default=60.0, help="time limit of the plain program")
    parser.add_argument("--output", type=Path, default=HERE / "results.md")
    arguments = parser.parse_args()
    parts = [
        "# Benchmark results",
        "Written by `make bench`. Timings vary with the machine and its load; compare ratios.",
        machine(),
        "## Chains, exact 1F1B\n\nUneven layers, heavy embedding and head, a memory limit that binds, nodes of eight "
        "with slow uplinks. One candidate.",
        "\n".join(chains(arguments.repeats, arguments.plain_seconds)),
        *ranking(arguments.repeats),
        "## Every schedule\n\nThe same chains with 45 % of every backward pass in its weight gradient, 60 s at most; "
        "two stages on every rank where the schedule wants several. Memory binds for each schedule alike.",
        "\n".join(schedules(arguments.repeats)),
        "\n".join(graphs()),
    ]
    parts += ["## Two kinds of device, and recompute\n\nSpeed 1 to 2.2, slow uplinks, memory binds.", "\n".join(ways())]
    parts += ["## Three lengths of sequence\n\nThe chains of the first table, 1F1B.", "\n".join(scenarios())]
    parts += [
        "## Degrees to choose from: 128 equal blocks, embedding and head on 64 nodes of 8 devices\n\nTensor-parallel "
        "degrees 1 to 8, replicas 1 to 512, any number of stages, a fixed batch; the optimizer's state is divided.",
        "\n".join(configurations()),
    ]
    parts += [
        "## Equal blocks in a row, embedding and head, 8 stages\n\nBlocks of one layer, or of six operators, three of "
        "them side by side; 20 s at most.",
        "\n".join(equal_rows()),
    ]
    table = peers(("cp-sat", "highs"))
    if table:
        parts += ["## dnn-partitioning, throughput inputs, no CPUs", "\n".join(table)]
    table = straight(arguments.repeats)
    if table:
        about = (
            "The peer, `pipedream_peer.py`, is our own writing of the published method, not PipeDream's program. That "
            "program gives the same stage times, except 0.258149 s for resnet50 on 4 machines: it counts the output of "
            "a fork on boundaries that the output no longer crosses."
        )
        parts += ["## PipeDream profiles, one machine for each stage, no memory limit", about, "\n".join(table)]
    table = degrees()
    if table:
        about = (
            "Bandwidth 25 GiB/s; seconds for bert32a100, milliseconds (as that work counts them) for resnet. Piper's "
            "figures are published results of its own program, which was not run here."
        )
        parts += ["## Piper inputs, degrees for each stage", about, "\n".join(table)]
    parts += [
        "## Solves that are cancelled and stopped\n\nBy the server, or by a worker beside it. The time is that from "
        "the request, at a random moment, until it is answered and the process of the solve has ended; a search has "
        "found its first plan by then.",
        "\n".join(endings(20)),
    ]
    arguments.output.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(json.dumps({"written": str(arguments.output.name)}))


if __name__ == "__main__":
    main()
