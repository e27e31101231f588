"""Tests of plans written as other frameworks write them."""

from typing import Any

import pytest

from partita.models.document import validate
from partita.models.errors import InvalidInput
from partita.models.layout_text import find_blocks, parse_megatron, parse_vllm
from partita.models.plan import GivenPlan
from partita.models.written_plan import written_plan

GPT = ["embedding", *(f"block.{number}" for number in range(6)), "head"]
FINE = ["words", "places", *(f"h.{n}.{part}" for n in range(3) for part in ("attention", "mlp")), "norm", "head"]
"""A model whose transformer layers are two layers each."""


def sizes(layers: list[str], **plan: str) -> list[int]:
    """Give how many layers each stage gets, in order."""
    stages = validate(GivenPlan, plan).stage_layers(layers, "/plan")
    assert [name for stage in stages for name in stage] == layers
    return [len(stage) for stage in stages]


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("EttL", ["EttL"]),
        ("Et*3|(tt|)*2L", ["Ettt", "tt", "tt", "L"]),
        ("Et*3|(tt|)*29,m|L", ["Ettt", *["tt"] * 29, "m", "L"]),  # the example of Megatron's own documentation
        ("Et|(t|)*3tL", ["Et", "t", "t", "t", "tL"]),
        ("E,t*2 | t*0 t,\nL", ["Ett", "tL"]),
        ("E(t*2|t)*2|L", ["Ett", "ttt", "t", "L"]),
    ],
)
def test_megatron_layouts_are_unrolled(text: str, stages: list[str]) -> None:
    """Tests repetitions of letters and groups, commas and spaces."""
    assert list(parse_megatron(text)) == stages


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "stage 0 of 1 is empty"),
        ("Et||tL", "stage 1 of 3 is empty, but every stage holds a layer; leave out one |"),
        ("E|t*3|(t|)*5|L", "stage 7 of 9 is empty"),
        ("Et|dL", "'dL' at character 4"),
        ("Et(tt|)L", "the group (tt|) needs a number of repetitions"),
        ("Et((t)*2|)*2L", "at character 3"),
        ("Et*2*3L", "'*3L' at character 5"),
        ("tEtL", "one E, then all t, then all m, then one L; unrolled this one is 'tEtL'"),
        ("EtmtL", "then all m"),
        ("Et*999999999L", "more than 40000 letters"),
        ("E" + "t" * 100_000, "has 100001 characters"),
    ],
)
def test_other_texts_are_no_layout(refused: Any, text: str, words: str) -> None:
    """Tests that place, reason and remedy are given."""
    fault = refused({"megatron_layout": text}, GivenPlan)["/megatron_layout"]
    assert words in fault.detail
    assert fault.value is not None


@pytest.mark.parametrize(
    ("text", "numbers"), [("8", (8,)), (" 8, 7,8\n", (8, 7, 8)), ("1," * 3 + "1" * 50, (1, 1, 1, 20_001))]
)
def test_vllm_lists(text: str, numbers: tuple[int, ...]) -> None:
    """Tests lists of numbers; one larger than any model is not counted further."""
    assert parse_vllm(text) == numbers


@pytest.mark.parametrize("text", ["", ",", "8,", "8,x", "-1,2", "8 8", "1.5", "3,0"])
def test_other_texts_are_no_vllm_list(refused: Any, text: str) -> None:
    """Tests what is not a list, and a stage without layers."""
    assert list(refused({"vllm_partition": text}, GivenPlan)) == ["/vllm_partition"]


def test_letters_stand_for_layers_one_by_one() -> None:
    """Tests as many letters as layers, whatever these are called."""
    assert sizes(GPT, megatron_layout="Ett|tt|tt|L") == [3, 2, 2, 1]
    assert sizes(["x", "y", "z"], megatron_layout="E|t|L") == [1, 1, 1]
    assert sizes([*GPT[:-1], "mtp", "head"], megatron_layout="Et*4|ttm|L") == [5, 3, 1]


def test_letters_stand_for_what_has_a_number() -> None:
    """Tests blocks of two layers, two layers before them and two after them, and a model of blocks alone."""
    assert sizes(FINE, megatron_layout="Et|t|tL") == [4, 2, 4]
    assert sizes(FINE, megatron_layout="E|t*3|L") == [2, 6, 2]
    assert sizes(GPT[1:-1], megatron_layout="Ettt|tttL") == [3, 3]


def test_numbers_of_blocks_or_of_layers() -> None:
    """Tests vLLM's lists: blocks, with the rest at the ends; all layers; a model of blocks alone."""
    assert sizes(GPT, vllm_partition="2,2,2") == [3, 2, 3]
    assert sizes(FINE, vllm_partition="1,2") == [4, 6]
    assert sizes(GPT, vllm_partition="2,6") == [2, 6]
    assert sizes(["x", "y", "z"], vllm_partition="1,2") == [1, 2]


@pytest.mark.parametrize(
    ("layers", "plan", "words"),
    [
        (GPT, {"megatron_layout": "Et*3|tL"}, "6 letters and the model 8 layers, with 6 transformer layers"),
        (GPT, {"megatron_layout": "Et*3|tL"}, "(block.0 … block.5); write 6 t in all"),
        (FINE, {"megatron_layout": "Et*3|tL"}, "with 3 transformer layers (h.0.attention … h.2.mlp); write 3 t in all"),
        (FINE, {"megatron_layout": "Et*3m|L"}, "with m each letter stands for one layer"),
        (["x", "y", "z"], {"megatron_layout": "Et*3|L"}, "without numbered layers in a row each letter"),
        (GPT[1:-1], {"megatron_layout": "E|t*6|L"}, "stage 0 holds E alone"),
        (GPT, {"vllm_partition": "3,4"}, "add up to 7; make them add up to the 6 layers of the model that are"),
        (GPT, {"vllm_partition": "3,4"}, "transformer layers (block.0 … block.5), or to all 8"),
        (["x", "y", "z"], {"vllm_partition": "3,4"}, "add up to 7; make them add up to the 3 layers of the model"),
    ],
)
def test_what_cannot_be_mapped_is_refused(layers: list[str], plan: dict[str, str], words: str) -> None:
    """Tests that the numbers of both sides are named, at the place of the text."""
    with pytest.raises(InvalidInput) as caught:
        sizes(layers, **plan)
    (fault,) = caught.value.faults
    assert fault.pointer == f"/plan/{next(iter(plan))}"
    assert fault.value is not None
    assert words in fault.detail


def test_the_longest_series_of_numbers_counts() -> None:
    """Tests names with several numbers, a series out of order, one with a gap, and none."""
    blocks = find_blocks(["gpt2.wte", *(f"gpt2.h.{n}.{part}" for n in range(4) for part in "ab"), "gpt2.norm1"])
    assert blocks is not None
    assert (blocks.before, len(blocks.each), blocks.each[1], blocks.after) == (
        ("gpt2.wte",),
        4,
        ("gpt2.h.1.a", "gpt2.h.1.b"),
        ("gpt2.norm1",),
    )
    assert find_blocks(["b.1", "b.0"]) is None
    assert find_blocks(["b.0", "between", "b.1"]) is None
    assert find_blocks(["a", "b"]) is None
    assert find_blocks(["b.1", "c"]) is None


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("Et|tL\n", "megatron_layout", "Et|tL"),
        ("8,8,8", "vllm_partition", "8,8,8"),
        ("VLLM_PP_LAYER_PARTITION='8,8'", "vllm_partition", "8,8"),
        ('--pipeline-model-parallel-layout "Et|tL"', "megatron_layout", "Et|tL"),
        ("--pipeline-model-parallel-layout=Ex", "megatron_layout", "Ex"),
    ],
)
def test_a_text_is_recognized(text: str, field: str, value: str) -> None:
    """Tests both forms, alone and behind the name of the option or variable."""
    assert written_plan(text) == {field: value}


@pytest.mark.parametrize("text", ["", "plan.json", "{}", "(", "E.json", "8;8"])
def test_other_texts_are_not(text: str) -> None:
    """Tests names of files and JSON."""
    assert written_plan(text) is None


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("module_fqns_per_model_part = [['a', 'b'], [\"c.0\",]]", "torchtitan_parts", [["a", "b"], ["c.0"]]),
        ("x = 1\nmodule_fqns_per_model_part=[\n  ['a'],\n]\ny = 2", "torchtitan_parts", [["a"]]),
        ("# a comment\nparts=[0, 3, 5]", "deepspeed_parts", [0, 3, 5]),
        ("# VLLM\nVLLM_PP_LAYER_PARTITION=1,2\n", "vllm_partition", "1,2"),
        ("--lr 1 --pipeline-model-parallel-layout 'Et|tL' --x", "megatron_layout", "Et|tL"),
        ("--num-layers=4 --decoder-last-pipeline-num-layers 1", "megatron_arguments", None),
    ],
)
def test_texts_of_options_are_recognized(text: str, field: str, value: Any) -> None:
    """Tests files of options and command lines, with other options and comments."""
    assert written_plan(text) == {field: text if value is None else value}


@pytest.mark.parametrize("text", ["module_fqns_per_model_part = [[a]]", "parts = []", "'--num-layers", "[0, 3]"])
def test_texts_that_are_something_else(text: str) -> None:
    """Tests lists without names or numbers."""
    assert written_plan(text) is None


NUMBERS = "--num-layers 6 --pipeline-model-parallel-size 2"
FIRST, LAST = "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"


def test_numbers_of_megatron() -> None:
    """Tests the first rank, the last, both, and two stages on every rank."""
    assert sizes(GPT, megatron_arguments=f"{NUMBERS} {FIRST} 4") == [5, 3]
    assert sizes(GPT, megatron_arguments=f"{NUMBERS} {LAST} 1") == [6, 2]
    assert sizes(FINE, megatron_arguments=f"--num-layers 3 --pipeline-model-parallel-size 3 {FIRST} 1 {LAST} 1") == [
        4,
        2,
        4,
    ]
    virtual = f"{NUMBERS} {FIRST} 4 --num-virtual-stages-per-pipeline-rank 2"
    assert sizes(GPT, megatron_arguments=virtual) == [3, 1, 2, 2]


def test_modules_of_torchtitan() -> None:
    """Tests names of layers, modules around layers, and a loss, which is no module."""
    parts = validate(GivenPlan, {"torchtitan_parts": [["words", "places", "h.0"], ["h.1", "h.2", "norm", "head"]]})
    assert [len(stage) for stage in parts.stage_layers([*FINE, "loss"])] == [4, 7]


def test_bounds_of_deepspeed() -> None:
    """Tests bounds over all layers, and over all but a loss."""
    assert [len(each) for each in validate(GivenPlan, {"deepspeed_parts": [0, 3, 8]}).stage_layers(GPT)] == [3, 5]
    plan = validate(GivenPlan, {"deepspeed_parts": [0, 3, 8]})
    assert [len(each) for each in plan.stage_layers([*GPT, "loss"])] == [3, 6]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"megatron_arguments": "--num-layers 6"}, "expected --num-layers, --pipeline-model-parallel-size and"),
        ({"megatron_arguments": f"{NUMBERS} {FIRST} x"}, "is a number from 1 to 20000, not 'x'"),
        ({"megatron_arguments": f"{NUMBERS} {FIRST} 7"}, "-1 of 6 layers are left for 1 other ranks"),
        ({"megatron_arguments": f"{NUMBERS} {FIRST} 2 {LAST} 2"}, "2 of 6 layers are left for 0 other ranks"),
        ({"megatron_arguments": f"{NUMBERS} {FIRST} 6"}, "rank 1 has 0 layers for 1 stages"),
        (
            {"megatron_arguments": f"{NUMBERS} {FIRST} 1 --num-virtual-stages-per-pipeline-rank 5"},
            "rank 0 has 1 layers for 5 stages",
        ),
        ({"megatron_arguments": f"--num-layers 6 --pipeline-model-parallel-size 1 {FIRST} 6"}, "is at least 2"),
        (
            {"megatron_arguments": f"{NUMBERS} {FIRST} 2 --num-virtual-stages-per-pipeline-rank 20000"},
            "40000 stages; at most 20000 are read",
        ),
        ({"deepspeed_parts": [1, 2]}, "the first bound is 1; the layers begin at 0"),
        ({"deepspeed_parts": [0, 2, 2]}, "stage 1 would hold the layers 2 to 2; every bound is larger"),
    ],
)
def test_forms_that_are_none(refused: Any, plan: Any, words: str) -> None:
    """Tests that place, reason and remedy are given before there is a model."""
    ((pointer, fault),) = refused(plan, GivenPlan).items()
    assert pointer == f"/{next(iter(plan))}"
    assert words in fault.detail


@pytest.mark.parametrize(
    ("plan", "place", "words"),
    [
        ({"deepspeed_parts": [0, 2, 7]}, "", "the last bound is 7, but the model has 8 layers; write that"),
        ({"megatron_arguments": f"--num-layers 9 --pipeline-model-parallel-size 2 {FIRST} 4"}, "", "add up to 9"),
        ({"torchtitan_parts": [["embedding", "block"], ["tail"]]}, "/1/0", "there is no layer 'tail', nor one inside"),
        ({"torchtitan_parts": [["embedding"], ["block", "head"], ["head"]]}, "/2/0", "'head' is listed twice"),
        ({"torchtitan_parts": [["embedding"], ["head"]]}, "", "6 of 8 layers are in no part: 'block.0'"),
    ],
)
def test_forms_that_do_not_fit_the_model(plan: Any, place: str, words: str) -> None:
    """Tests that the first fault is at its place in the plan."""
    with pytest.raises(InvalidInput) as caught:
        validate(GivenPlan, plan).stage_layers(GPT, "/plan")
    fault = caught.value.faults[0]
    assert fault.pointer == f"/plan/{next(iter(plan))}{place}"
    assert words in fault.detail
