"""Tests against the published figures of Qi et al., Zero Bubble Pipeline Parallelism (arXiv 2401.10241)."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from oracle.shared_data import shared_file
from oracle.small import small_problem
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.models.schedule import Schedule
from partita.solver.arrays import Times
from partita.solver.event_graph import BACKWARD, FORWARD, EventGraph
from partita.solver.pipeline import arrange
from partita.solver.review import evaluate_plan

ROWS = range(6)
EXACT = [("1f1b", "1F1B"), ("zb_h1", "ZB-H1"), ("zb_h2", "ZB-H2")]
INTERLEAVED_WITHIN = 0.004
"""How closely the interleaved rates are met; the reference itself says that it cannot be met exactly."""
MEMORY_WITHIN = 0.04
MIXED = {"gradient_bytes_per_weight_byte": 1.0, "state_bytes_per_weight_byte": 6.0}
"""16 bytes per parameter: weights and gradients of 2, and a copy, momentum and variance of 4 each."""
VOCABULARY = 50304
"""Assumed: the paper does not tell. It does not matter, as the ends of the pipeline are not the fullest."""


@cache
def reference() -> dict[str, Any]:
    """Read the published figures; skip the test where they are absent."""
    found: dict[str, Any] = json.loads(shared_file("zero_bubble.json", "reference"))
    return found


def model_of(name: str) -> dict[str, Any]:
    """Give the description of a published model."""
    found: dict[str, Any] = next(each for each in reference()["models"] if each["model"] == name)
    return found


def bubble_rate(kind: str, row: dict[str, Any], chunks: int) -> float:
    """Give (cost - m (F + I + W)) / cost; cost is the longest time from start of first to end of last action of a rank.

    Every stage takes F, I and W divided by the stages per rank; every transfer takes the same.
    """
    ranks, microbatches = row["p"], row["m"]
    forward, inputs, weights = (row[f"T_{kind}_ms"] for kind in "FBW")
    schedule = Schedule.model_validate({"kind": kind, "chunks_per_rank": chunks})
    graph = EventGraph(arrange(schedule, chunks * ranks, microbatches), skipping=False, blocking=False)
    times: Times = np.zeros(graph.num_columns)
    passes = [forward, inputs, weights] if graph.num_passes == 3 else [forward, inputs + weights]
    for columns, seconds in zip(graph.passes(times), passes, strict=True):
        columns[:] = seconds / chunks
    for direction in (FORWARD, BACKWARD):
        graph.transfers(times, direction)[:] = row["T_comm_ms"]
    ends = graph.ends(times)
    costs: list[float] = []
    first = 0
    for order in graph.pipeline.orders:
        assert order[0][0] == "F"
        costs.append(float(ends[first + len(order) - 1] - ends[first]) + forward / chunks)
        first += len(order)
    busy = float(microbatches * (forward + inputs + weights))
    return 1 - busy / max(costs)


@pytest.mark.parametrize("number", ROWS)
@pytest.mark.parametrize(("kind", "name"), EXACT)
def test_bubble_rates(kind: str, name: str, number: int) -> None:
    """Tests the published rates to their four decimals (table 5)."""
    row = reference()["rows"][number]
    rate = bubble_rate(kind, row, 1)
    assert round(rate, 4) == row["bubble_rate"][name]
    assert rate == pytest.approx(row["recomputed"][name]["bubble_rate"], abs=1e-6)


@pytest.mark.parametrize("number", ROWS)
def test_bubble_rates_of_interleaved_1f1b(number: int) -> None:
    """Tests the rates with three chunks per rank; every value computed is above the published one, by up to 0.0035."""
    row = reference()["rows"][number]
    rate = bubble_rate("interleaved_1f1b", row, model_of(row["model"])["v_in_1F1B-I"])
    assert rate == pytest.approx(row["bubble_rate"]["1F1B-I"], abs=INTERLEAVED_WITHIN)
    assert rate == pytest.approx(row["recomputed"]["1F1B-I"]["bubble_rate"], abs=1e-6)


def test_all_rows_are_tested() -> None:
    """Tests that the reference has no further rows."""
    assert len(reference()["rows"]) == len(ROWS)


def published_model(model: dict[str, Any], microbatches: int) -> Problem:
    """Make the problem of a published model: embedding, transformer layers and head in 16 bits.

    A transformer layer has 12 h^2 + 13 h parameters (Narayanan et al., arXiv 2104.04473, equation 2) and keeps
    s b (34 h + 5 a s) bytes of activations (Korthikanti et al., arXiv 2205.05198, equation 1).
    """
    hidden, tokens = model["hidden"], model["sequence_length"] * model["b"]
    activations = tokens * (34 * hidden + 5 * model["heads"] * model["sequence_length"])
    layer = {
        "weight_bytes": 2 * (12 * hidden**2 + 13 * hidden),
        "activation_bytes": activations,
    }
    end = {"weight_bytes": 2 * VOCABULARY * hidden, "activation_bytes": 2 * tokens * hidden}
    layers = {"embedding": end, **{f"layer{number}": layer for number in range(model["layers"])}, "head": end}
    usual = {"forward_s": 1.0, "backward_s": 2.0, "output_bytes": 2 * tokens * hidden}
    return small_problem(
        {name: usual | costs for name, costs in layers.items()},
        devices=model["p"],
        memory=80 * 10**9,
        schedule="1f1b",
        num_microbatches=microbatches,
        optimizer=MIXED,
    )


@pytest.mark.parametrize("number", ROWS)
def test_peak_memory_of_1f1b(number: int) -> None:
    """Tests the measured peaks of 1F1B (table 4), 30 and 32 GB, within 4 %: 29.1 and 32.6 GB here, for every m.

    The paper tells neither the bytes per parameter nor whether GB is 10^9 or 2^30 bytes. Of 16, 18 and 20 bytes and
    both meanings, only 16 bytes and 10^9 bring both models this close; 18 bytes give 29.4 and 34.4 times 10^9.
    """
    row = reference()["rows"][number]
    model = model_of(row["model"])
    inner = model["layers_per_inner_stage"]
    plan = GivenPlan(stage_sizes=(inner,) * model["p"])  # the ends hold one layer fewer, and embedding or head
    (candidate,) = evaluate_plan(published_model(model, row["m"]), plan).candidates
    measured = model["measured_peak_memory_GB"]["1F1B"] * 10**9
    assert candidate.metrics.peak_memory_bytes == pytest.approx(measured, rel=MEMORY_WITHIN)
    assert [stage.memory.in_flight for stage in candidate.stages] == list(range(model["p"], 0, -1))
    assert candidate.stages[1].memory.total_bytes == candidate.metrics.peak_memory_bytes
