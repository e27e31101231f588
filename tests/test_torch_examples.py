"""The examples of PyTorch models: captured, cut and verified, and as the scripts that their README shows."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import example_scripts
from example_scripts import EXAMPLES
from partita.models.problem import read_problem

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
plans = pytest.importorskip("torch_plans")
pytorch = pytest.importorskip("partita.models.pytorch")
matching = pytest.importorskip("partita.models.pytorch.matching")
proof = pytest.importorskip("partita.models.pytorch.proof")

SCRIPTS = {
    "gpt": ("1f1b", [4, 6], {"words.weight"}),
    "resnet": ("zb_v", [2, 3, 5], set()),
    "encoder_decoder": ("gpipe", [2, 4, 5], set()),
}
"""Schedule, cuts between blocks, and the parameters whose gradients are added up over ranks."""


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import an example as its script does."""
    monkeypatch.syspath_prepend(EXAMPLES / "pytorch")
    return example_scripts.load(f"pytorch/{name}.py")


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_is_computed_by_its_stages(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that stages give what the model gives, to the bit but for tied weights."""
    schedule, cuts, tied = SCRIPTS[name]
    captured = pytorch.capture(*load(name, monkeypatch).build())
    plan = plans.run_plan(captured.layers, cuts, schedule)
    found = proof.verify(captured, plan, steps=1, time_limit_s=120)
    assert not found.wrong
    assert {each.name for each in found.differences if each.absolute} == tied


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_kept_profile_is_that_of_the_module(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that layers, tensors and bytes of the problem beside a script are those of its module now."""
    kept = read_problem((EXAMPLES / "pytorch" / f"{name}.json").read_bytes()).model
    found = matching.matched(pytorch.capture(*load(name, monkeypatch).build()), kept).outline()
    times = {"forward_s", "backward_s", "weight_gradient_s", "workspace_bytes", "options"}
    for attribute in ("layers", "tensors", "weights", "buffers", "shared_activations"):
        now, before = (getattr(model, attribute) for model in (found, kept))
        assert [each.model_dump(exclude=times) for each in now] == [each.model_dump(exclude=times) for each in before]
    assert all(layer.forward_s > 0 for layer in kept.layers)


def test_examples_are_described() -> None:
    """Tests that the README of the examples names every script."""
    described = set(re.findall(r"^## pytorch/(\S+)\.py", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE))
    assert described == set(SCRIPTS) == {path.stem for path in (EXAMPLES / "pytorch").glob("*.py")} - {"walk"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_goes_all_the_way(name: str, tmp_path: Path) -> None:
    """Tests that a script profiles, plans and verifies, and keeps the problem where it is told to."""
    script = str(EXAMPLES / "pytorch" / f"{name}.py")
    kept = tmp_path / "problem.json"
    run = subprocess.run([sys.executable, script, str(kept)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("$ partita ") == 3
    assert "The same: no difference is larger than rounding explains." in run.stdout
    assert kept.exists()
