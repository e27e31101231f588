"""Plans as texts of other frameworks: written, read back by what ``partita evaluate`` reads, or refused."""

import json
import re
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from types import ModuleType

import pytest
from cli_calls import partita
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_answers import candidate, stage
from small_problems import chain
from small_timelines import answer_json, training_problem

from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.plan import GivenPlan
from partita.models.problem import Problem
from partita.models.writers.deepspeed import write_deepspeed
from partita.models.writers.megatron import write_megatron, write_megatron_numbers
from partita.models.writers.torchtitan import write_torchtitan
from partita.models.writers.vllm import write_vllm
from partita.models.written_plan import written_plan
from partita.service.reports.exports import EXPORTS
from partita.service.reports.formats import FORMATS

WRITERS = {
    "deepspeed": write_deepspeed,
    "megatron": write_megatron,
    "megatron-numbers": write_megatron_numbers,
    "torchtitan": write_torchtitan,
    "vllm": write_vllm,
}
GPT = ["embedding", *(f"block.{number}" for number in range(6)), "head"]


def problem_of(layers, recompute="full"):
    """Give a problem with layers of these names, on a node with eight devices."""
    options = [{"recompute": name, "forward_s": 1.0} for name in ("full", "selective")]
    model = {"layers": [{"name": name, "forward_s": 1.0, "options": options} for name in layers]}
    nodes = [{"name": "node0", "device": "d", "count": 8, "fabric": {"bandwidth_bytes_per_s": 1e9}}]
    return validate(Problem, chain(model=model, cluster__nodes=nodes, constraints={"recompute": recompute}))


def plan_of(layers, sizes, schedule="1f1b", chunks=1, **more):
    """Give a plan with so many layers on each stage; the stages are dealt out to the ranks in turn."""
    parts, ranks = cut(layers, sizes), len(sizes) // chunks
    recompute = more.pop("recompute", ())
    stages = [
        stage(i, *part, rank=i % ranks, recompute=tuple(name for name in part if name in recompute))
        for i, part in enumerate(parts)
    ]
    return candidate(*stages, schedule=schedule, **more)


def write(format, layers, sizes, schedule="1f1b", chunks=1, option="full", **more):
    """Write a plan in a format; what it recomputes is by the option."""
    return WRITERS[format](problem_of(layers, option), plan_of(layers, sizes, schedule, chunks, **more))


def sizes_in(text, layers):
    """Read a plan as ``partita evaluate`` does, and give how many layers each stage has."""
    stages = validate(GivenPlan, written_plan(text)).stage_layers(layers)
    assert [name for each in stages for name in each] == layers
    return [len(each) for each in stages]


def cut(layers, sizes):
    """Cut the layers into stages."""
    ends = list(accumulate(sizes))
    return [layers[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def unrolled(text):
    """Unroll the layout as Megatron does: groups once, then letters; what is left over would be refused there."""
    layout = text.partition('"')[2].partition('"')[0]
    groups = re.sub(r"\(([^)]+)\)\*(\d+)", lambda found: found[1] * int(found[2]), layout)
    letters = re.sub(r"(.)\*(\d+)", lambda found: found[1] * int(found[2]), groups)
    assert set(letters) <= set("EtL|"), letters
    return letters


@st.composite
def plans(draw):
    """Draw the names of a model's layers, and how many each stage has."""
    before = ["tokens", "places"][: draw(st.integers(0, 2))]
    parts = draw(st.sampled_from([("",), (".attention", ".mlp")]))
    blocks = [[f"h.{number}{part}" for part in parts] for number in range(draw(st.integers(2, 6)))]
    after = ["norm", "head", "loss"][draw(st.integers(0, 3)) :]
    layers = [*before, *(name for block in blocks for name in block), *after]
    cuts = draw(st.sets(st.integers(1, len(layers) - 1), max_size=5))
    ends = [0, *sorted(cuts), len(layers)]
    return before, blocks, after, [end - start for start, end in pairwise(ends)]


def expressible(format, before, blocks, after, sizes, ranks):
    """Tell by other means whether a format can express a plan."""
    layers = [*before, *(name for block in blocks for name in block), *after]
    stage_of = dict(zip(layers, [i for i, size in enumerate(sizes) for _ in range(size)], strict=True))
    last = len(sizes) - 1
    if format == "deepspeed":
        return after[-1:] != ["loss"] or sizes[-1] > 1
    whole = all(len({stage_of[name] for name in block}) == 1 for block in blocks)
    if format == "torchtitan":
        return whole and (after[-1:] != ["loss"] or sizes[-1] > 1)
    if not whole or any(len({stage_of[name] for name in group}) > 1 for group in (before, after)):
        return False
    counts = [sum(stage_of[block[0]] == index for block in blocks) for index in range(len(sizes))]
    if format == "megatron":
        return True
    if 0 in counts or (format == "megatron-numbers" and ranks < 2):
        return False
    of_rank = [{counts[index] for index in range(rank, last + 1, ranks)} for rank in range(ranks)]
    middle = set().union(*of_rank[1:-1])
    return format == "vllm" or (all(len(each) == 1 for each in of_rank) and len(middle) < 2)


@pytest.mark.parametrize("format", WRITERS)
@settings(max_examples=150, deadline=None)
@given(plans(), st.sampled_from([1, 2]))
@example((["tokens", "places"], [["h.0"], ["h.1"]], [], [3, 1]), 1)  # as many letters as layers, of another meaning
def test_what_is_written_is_read_as_the_same_plan(format, plan, chunks):
    """Tests that a plan is written and read back, or refused exactly where the format cannot express it."""
    before, blocks, after, sizes = plan
    layers = [*before, *(name for block in blocks for name in block), *after]
    chunks = chunks if format.startswith("megatron") and not len(sizes) % chunks else 1
    schedule = "forward_only" if format == "vllm" else "interleaved_1f1b" if chunks > 1 else "1f1b"
    try:
        text = write(format, layers, sizes, schedule, chunks)
    except InvalidInput as error:
        assert not expressible(format, *plan, ranks=len(sizes) // chunks), error
        (fault,) = error.faults
        assert (fault.code, fault.pointer.startswith("/plan/")) == ("not_expressible", True)
    else:
        assert expressible(format, *plan, ranks=len(sizes) // chunks), text
        assert sizes_in(text, layers) == sizes
        if format == "megatron":
            counts = [stage.count("t") for stage in unrolled(text).split("|")]
            assert counts == [sum(block[0] in part for block in blocks) for part in cut(layers, sizes)]


def test_megatron_by_hand():
    """Tests repeated stages and letters, two stages on every rank, tensor parallelism and full recompute."""
    assert write("megatron", GPT, [3, 2, 2, 1]) == (
        '--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout "Ett|(tt|)*2L"\n'
    )
    text = write("megatron", GPT, [1, 3, 3, 1], "interleaved_1f1b", 2, tensor_parallel=1, recompute=GPT[1:-1])
    assert text == (
        '--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "E|(t*3|)*2L" '
        "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1\n"
    )


def test_megatron_numbers_by_hand():
    """Tests a first and a last rank of their own, on one and two stages each."""
    assert write("megatron-numbers", GPT, [2, 2, 2, 2]) == (
        "--num-layers 6 --pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1 "
        "--decoder-last-pipeline-num-layers 1\n"
    )
    text = write("megatron-numbers", GPT, [2, 2, 1, 3], "interleaved_1f1b", 2)
    assert text.endswith(
        "--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 2 "
        "--decoder-last-pipeline-num-layers 4 --num-virtual-stages-per-pipeline-rank 2\n"
    )


def test_vllm_torchtitan_and_deepspeed_by_hand():
    """Tests the other texts; the Python file of DeepSpeed can be compiled."""
    assert write("vllm", GPT, [3, 2, 3], "forward_only") == "VLLM_PP_LAYER_PARTITION=2,2,2\n"
    assert write("torchtitan", [*GPT, "loss"], [4, 5]) == (
        'pipeline_parallel_degree = 2\npipeline_parallel_schedule = "1F1B"\nmodule_fqns_per_model_part = [\n'
        '    ["embedding", "block.0", "block.1", "block.2"],\n    ["block.3", "block.4", "block.5", "head"],\n]\n'
    )
    text = write("deepspeed", [*GPT, "loss"], [4, 5], recompute=GPT)
    compile(text, "planned.py", "exec")
    assert "PARTS = [0, 4, 8]\n" in text
    assert "Give num_stages=2, activation_checkpoint_interval=1." in text


class PipelineModule:
    """Stands for DeepSpeed's: calls what it calls, in the same order."""

    def __init__(self, layers, stage):
        self.stage_id, self._num_layers = stage, len(layers)
        self._partition_layers(method="parameters")
        self.built = layers[self.start : self.stop]

    def _set_bounds(self, start=None, stop=None):
        self.start, self.stop = start, stop


def test_deepspeed_builds_the_planned_layers(monkeypatch):
    """Tests that the class that is written gives every stage its layers, and refuses another number of them."""
    package, pipe = ModuleType("deepspeed"), ModuleType("deepspeed.pipe")
    pipe.PipelineModule = PipelineModule
    monkeypatch.setitem(sys.modules, "deepspeed", package)
    monkeypatch.setitem(sys.modules, "deepspeed.pipe", pipe)
    planned = {}
    exec(write("deepspeed", GPT, [3, 4, 1]), planned)
    made = [planned["PlannedPipelineModule"](GPT, stage) for stage in range(3)]
    assert [each.built for each in made] == cut(GPT, [3, 4, 1])
    assert made[0].parts == [0, 3, 7, 8]
    with pytest.raises(AssertionError, match="7 layers, the plan is for 8"):
        planned["PlannedPipelineModule"](GPT[1:], 0)


@pytest.mark.parametrize(
    ("format", "layers", "sizes", "more", "place", "words"),
    [
        ("megatron", GPT, [4, 4], {"schedule": "gpipe"}, "schedule", "does not run gpipe; plan for 1f1b or"),
        ("vllm", GPT, [4, 4], {}, "schedule", "vLLM does not run 1f1b; plan for forward_only"),
        ("deepspeed", GPT, [4, 4], {"schedule": "zb_h1"}, "schedule", "DeepSpeed does not run zb_h1"),
        ("torchtitan", GPT, [4, 4], {"schedule": "zb_h2"}, "schedule", "torchtitan does not run zb_h2"),
        ("megatron", ["a", "b", "c"], [2, 1], {}, "stages", "name them so, or use another export: export torch"),
        ("vllm", GPT, [1, 7], {"schedule": "forward_only"}, "stages/0/layers", "name 'embedding' and 'block.0' in"),
        ("megatron-numbers", GPT, [2, 3, 1, 2], {}, "stages/2/layers", "stage 2 has 1 transformer layers, stage 1 3"),
        ("megatron-numbers", GPT, [8], {}, "stages", "numbers are for 2 ranks or more"),
        ("torchtitan", ["a", "rep@1", "b"], [2, 1], {}, "stages/0/layers", "'rep@1' is not the name of one module"),
        ("torchtitan", ["m.a", "m.b"], [1, 1], {}, "stages/1/layers", "keeps the module 'm' on one stage"),
        ("megatron", GPT, [4, 4], {"recompute": GPT[:2]}, "stages/0/recompute", "'embedding' is recomputed"),
        ("megatron", GPT, [4, 4], {"recompute": GPT[1:3]}, "stages/0/recompute", "'block.2' is not recomputed"),
        (
            "torchtitan",
            GPT,
            [4, 4],
            {"recompute": GPT[1:-1], "option": "selective"},
            "stages/0/recompute",
            "by the option 'selective', which torchtitan cannot be told",
        ),
    ],
)
def test_what_cannot_be_expressed_is_refused(format, layers, sizes, more, place, words):
    """Tests that the place in the plan, the reason and what would do are told."""
    with pytest.raises(InvalidInput) as caught:
        write(format, layers, sizes, **more)
    (fault,) = caught.value.faults
    assert (fault.pointer, fault.code) == (f"/plan/{place}", "not_expressible")
    assert words in fault.detail


def placed(*ranks, **more):
    """Give a plan of a layer for each rank, on these devices, and its problem on three nodes of two devices."""
    layers = [f"h.{number}" for number in range(len(ranks))]
    node = {"name": "n", "replicas": 3, "device": "d", "count": 2, "fabric": {"bandwidth_bytes_per_s": 1e9}}
    nodes = [{**node, "uplink": {"bandwidth_bytes_per_s": 1e9}}]
    problem = validate(Problem, {**chain(cluster__nodes=nodes), "model": problem_of(layers).model.model_dump()})
    plan = plan_of(layers, [1] * len(ranks), **more)
    stages = [each.model_copy(update={"devices": names}) for each, names in zip(plan.stages, ranks, strict=True)]
    return problem, plan.model_copy(update={"stages": tuple(stages)})


def test_devices_in_another_order_are_named():
    """Tests ranks that a launcher numbers otherwise than the cluster does."""
    assert write_megatron(*placed(("n0:0",), ("n0:1",), ("n1:0",))).startswith("--pipeline")
    text = write_megatron(*placed(("n1:0",), ("n1:1",), ("n0:0",)))
    assert text.startswith("# devices by global rank: n1:0, n1:1, n0:0\n--pipeline")
    assert written_plan(text) == {"megatron_layout": "Et|t|tL"}


def test_ranks_of_a_node_that_are_not_in_a_row_are_refused():
    """Tests a node between whose ranks another node has one."""
    with pytest.raises(InvalidInput, match="numbers the ranks of a node in a row"):
        write_megatron(*placed(("n0:0",), ("n1:0",), ("n0:1",)))


def test_replicas_spread_over_nodes():
    """Tests that Megatron is told to number pipelines, not stages, where replicas are on nodes of their own."""
    spread = (("n0:0", "n1:0"), ("n0:1", "n1:1"))
    text = write_megatron(*placed(*spread, data_parallel=2))
    assert text.endswith(" --use-tp-pp-dp-mapping\n")
    assert write_vllm(*placed(*spread, data_parallel=2, schedule="forward_only")).startswith("VLLM")
    with pytest.raises(InvalidInput, match="DeepSpeed numbers"):
        write_deepspeed(*placed(*spread, data_parallel=2))


@pytest.mark.parametrize("format", ["torch", "torchtitan", "deepspeed", "megatron"])
def test_exports_are_plans_for_evaluate(file, tmp_path, format):
    """Tests that the file of a plan, priced again, has the metrics of the plan."""
    chunks = 1 if format == "deepspeed" else 2
    problem = training_problem(2, 4, chunks, schedule="1f1b" if chunks == 1 else "interleaved_1f1b")
    answer, written = answer_json(problem), str(tmp_path / "written")
    assert partita("export", format, file(answer), "-o", written).exit_code == 0
    given = file(json.loads(problem.model_dump_json()), "problem.json")
    called = partita("evaluate", given, written, "--no-solve", "--json")
    assert called.exit_code == 0, called.err
    assert json.loads(called.out)["candidates"][0]["metrics"] == answer["candidates"][0]["metrics"]


@pytest.mark.parametrize("format", ["torchtitan", "deepspeed"])
def test_what_modules_have_to_do_is_said(file, tmp_path, format):
    """Tests notes about tensors beside the one that every boundary carries, and about tied weights."""
    names = ["words", "body", "head", "loss"]
    problem = chain(training={"schedule": "1f1b", "num_stages": 3, "num_microbatches": 3})
    problem["cluster"]["nodes"][0]["count"] = 3
    problem["model"] = {
        "layers": [{"name": name, "forward_s": 1.0 + (name == "loss"), "backward_s": 2.0} for name in names],
        "tensors": [
            {"name": "values", "producer": "words", "consumers": ["body", "head"], "bytes": 8, "gradient_bytes": 8},
            {"name": "labels", "producer": "words", "consumers": ["loss"], "bytes": 8},
            {"name": "turned", "producer": "body", "consumers": ["head"], "bytes": 8, "gradient_bytes": 8},
            {"name": "scores", "producer": "head", "consumers": ["loss"], "bytes": 8, "gradient_bytes": 8},
        ],
        "weights": [{"name": "table", "bytes": 8, "layers": ["words", "head"]}],
    }
    problem["constraints"] = {"together": [["head", "loss"]]}
    answer = str(tmp_path / "answer.json")
    assert partita("plan", file(problem, "problem.json"), "-o", answer).exit_code == 0
    called = partita("export", format, answer)
    assert called.exit_code == 0, called.err
    assert [line for line in called.out.splitlines() if line.startswith("#")] == [
        "# from stage 1 to 2 the modules have to pass on 2 tensors: 'values', 'turned'",
        "# 'table' is on stages 0, 2: its gradients have to be added up over them",
    ]


def test_torch_by_hand(file):
    """Tests devices, groups, ranks and orders of a folded plan on two nodes."""
    called = partita("export", "torch", file(answer_json(training_problem(2, 4, 2, schedule="zb_v"))))
    assert (called.exit_code, called.err) == (0, "")
    plan = json.loads(called.out)
    assert (plan["devices"], plan["groups"], plan["stage_to_rank"]) == (["n0:0", "n1:0"], [[0, 1]], [0, 1, 1, 0])
    assert plan["stages"] == [["l0"], ["l1"], ["l2"], ["l3"]]
    assert [row.split(",")[0] for row in plan["orders"]] == ["0F0", "1F0"]


def test_an_answer_that_contradicts_itself_is_no_plan_for_torch(file):
    """Tests that what was changed by hand is refused at the plan."""
    answer = answer_json(training_problem(2, 4, 2, schedule="zb_v"))
    answer["candidates"][0]["num_microbatches"] = 1
    called = partita("export", "torch", file(answer))
    assert called.exit_code == 2
    assert "/candidates/0: the plan contradicts itself: the orders run 4 microbatches; write 4 as" in called.err


def test_recompute_is_exported_and_read(file, tmp_path):
    """Tests that the options that a plan chooses for its layers are those that are priced again."""
    problem = chain(training={"schedule": "1f1b", "num_stages": 2, "num_microbatches": 4})
    problem["constraints"] = {"recompute": "choose"}
    problem["cluster"]["devices"]["d"]["memory_bytes"] = 4500  # the receive buffers take 2000
    for layer in problem["model"]["layers"]:
        options = [{"recompute": "full", "activation_bytes": 0}, {"recompute": "selective", "activation_bytes": 100}]
        layer |= {"backward_s": 1.0, "activation_bytes": 900, "weight_bytes": 0, "options": options}
        layer["options"] = [each | {"backward_s": 2.0 - 0.1 * n} for n, each in enumerate(options)]
    answer, written = str(tmp_path / "answer.json"), str(tmp_path / "written.json")
    called = partita("plan", file(problem, "problem.json"), "-o", answer)
    assert called.exit_code == 0, called.err
    assert partita("export", "torch", answer, "-o", written).exit_code == 0
    chosen = json.loads(Path(written).read_text())["recompute"]
    assert any(chosen)
    again = json.loads(partita("evaluate", answer, written, "--no-solve", "--json").out)["candidates"][0]
    assert [stage["options"] for stage in again["stages"]] == chosen
    assert again["metrics"] == json.loads(Path(answer).read_text())["candidates"][0]["metrics"]


def test_groups_of_replicas(file):
    """Tests a group for every replica, with the ranks of its own devices."""
    problem = training_problem(4, 4, data_parallel=2, num_stages=2)
    answer = json.loads(partita("plan", file(json.loads(problem.model_dump_json()), "p.json"), "--json").out)
    answer["problem"] = json.loads(problem.model_dump_json())
    plan = json.loads(partita("export", "torch", file(answer)).out)
    devices = [stage["devices"] for stage in answer["candidates"][0]["stages"]]
    assert [[plan["devices"][rank] for rank in group] for group in plan["groups"]] == [
        [each[0] for each in devices],
        [each[1] for each in devices],
    ]


def test_a_plan_of_another_problem_is_refused(file):
    """Tests a layer that the problem does not have."""
    answer = answer_json(training_problem())
    answer["candidates"][0]["stages"][1]["layers"] = ["x"]
    path = file(answer)
    called = partita("export", "megatron", path)
    assert (called.exit_code, called.out) == (2, "")
    assert called.err.startswith(f"{path}: /candidates/0/stages/1/layers/0: there is no layer 'x'")


@pytest.mark.parametrize(
    ("member", "value", "place"),
    [("layers", [], "layers"), ("layers", ["a\x01"], "layers/0"), ("devices", [""], "devices/0")],
)
@pytest.mark.parametrize("format", ["torchtitan", "chrome-trace"])
def test_a_stage_that_is_none_is_named(file, format, member, value, place):
    """Tests that an answer whose stages were spoiled is refused, with the place."""
    answer = answer_json(training_problem())
    answer["candidates"][0]["stages"][0][member] = value
    refused = partita("export", format, file(answer))
    assert refused.exit_code == 2 and f"/candidates/0/stages/0/{place}: " in refused.err


def test_the_help_names_all_formats():
    """Tests that command line and service know all formats without importing their writers."""
    assert list(FORMATS) == list(EXPORTS) == sorted(FORMATS)
    assert all(format in " ".join(partita("export", "--help").out.split()) for format in FORMATS)
