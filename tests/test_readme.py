"""Tests that what the README shows is what happens."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from partita.models.answer import Answer
from partita.models.document import validate
from partita.models.merge_patch import merged
from partita.models.problem import Problem
from partita.models.schedule import Schedule, ScheduleKind
from partita.service.charts.names import CHARTS, charts_of
from partita.service.reports.wording import seconds
from partita.solver.planner import plan_problem

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


PROSE = " ".join(README.split())


def patched(heading: str) -> Answer:
    """Plan the README's problem with the patch that stands under a heading in bold."""
    problem = re.search(r"cat > problem.json <<'END'\n(.*?)\nEND\n", README, re.DOTALL)
    patch = re.search(rf"\*\*{heading}\.\*\* .*?```json\n(.*?)\n```", README, re.DOTALL)
    assert problem and patch
    answer = plan_problem(validate(Problem, merged(json.loads(problem[1]), json.loads(patch[1]))))
    assert answer.status == "optimal"
    return answer


def shell(commands: str, folder: Path) -> str:
    """Run commands of the README beside its problem; give what they print."""
    problem = re.search(r"cat > problem.json <<'END'\n(.*?)\nEND\n", README, re.DOTALL)
    assert problem
    (folder / "problem.json").write_text(problem[1], encoding="utf-8")
    run = subprocess.run(
        ["sh", "-e", "-c", commands.replace(".venv/bin/partita", f"{sys.executable} -m partita.service")],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


def test_the_answer_is_the_real_one(tmp_path: Path) -> None:
    """Tests that planning the README's problem prints the README's answer."""
    answer = re.search(r"```text\n(problem: .*?)\n```", README, re.DOTALL)
    assert answer
    text = shell(".venv/bin/partita plan problem.json", tmp_path)
    printed = [line.rstrip() for line in text.rstrip().split("\n")]
    assert printed == answer[1].split("\n")


def test_the_other_commands_work(tmp_path: Path) -> None:
    """Tests that pricing a plan and importing a profile work as they are shown."""
    commands = re.search(r"```sh\n(echo .*?)```", README, re.DOTALL)
    assert commands
    printed = shell(commands[1], tmp_path)
    assert "557.6 ms, the same" in printed
    assert "imported: 2 layers" in printed


def test_the_batch_works(tmp_path: Path) -> None:
    """Tests that the commands for a batch write a result for each of its two problems."""
    commands = re.search(r"```sh\n(sed [^`]*? batch .*?)```", README, re.DOTALL)
    assert commands
    shell(commands[1], tmp_path)
    found = [json.loads(line) for line in (tmp_path / "results.ndjson").read_text().splitlines()]
    assert {each["answer"]["candidates"][0]["num_microbatches"] for each in found} == {12, 24}


def test_the_reason_why_there_is_no_plan_is_the_real_one(tmp_path: Path) -> None:
    """Tests that the command for a problem without a plan prints the reason shown."""
    commands = re.search(r"```sh\n(sed .*?)```", README, re.DOTALL)
    shown = re.search(r"```text\n(No plan\n.*?)\n```", README, re.DOTALL)
    assert commands and shown
    printed = shell(f"{commands[1].rstrip()} || test $? = 3", tmp_path)
    assert shown[1] in "\n".join(line.rstrip() for line in printed.split("\n"))


def test_the_timeline_is_the_real_one(tmp_path: Path) -> None:
    """Tests that the commands for timelines work, and that the text is the one shown."""
    commands = re.search(r"```sh\n([^`]*? timeline .*?)```", README, re.DOTALL)
    shown = re.search(r"```text\n(1f1b: .*?)\n```", README, re.DOTALL)
    assert commands and shown
    printed = shell(commands[1], tmp_path)
    assert printed.rstrip().endswith(shown[1])
    assert (tmp_path / "timeline.svg").read_text(encoding="utf-8").startswith("<svg ")
    assert (tmp_path / "trace.json").stat().st_size > 1000


def test_the_charts_are_drawn(tmp_path: Path) -> None:
    """Tests that the commands for charts work, and that every chart is named."""
    commands = re.search(r"```sh\n([^`]*? plot .*?)```", README, re.DOTALL)
    assert commands
    shell(f".venv/bin/partita plan problem.json -o answer.json > report.txt\n{commands[1]}", tmp_path)
    assert (tmp_path / "memory.svg").read_text(encoding="utf-8").startswith("<svg ")
    assert (tmp_path / "layers.png").stat().st_size > 1000
    assert {path.stem for path in (tmp_path / "charts").iterdir()} == set(charts_of("plan"))
    (sentence,) = re.findall(r"`plot` draws an answer: .*?:", PROSE)
    assert {name for name in CHARTS if f"`{name}`" in sentence} == set(CHARTS)


def test_every_schedule_is_listed() -> None:
    """Tests that the table has a row for every schedule, and says what each runs on a rank."""
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \| (\w[^|]*) \|", README, re.MULTILINE)
    listed = {name: (stages, backward) for names, stages, backward in rows for name in re.findall(r"\w+", names)}
    assert set(listed) == set(get_args(ScheduleKind))
    for name, (stages, backward) in listed.items():
        if name != "custom":
            schedule = Schedule.model_validate({"kind": name})
            assert schedule.chunks == (1 if stages == "r" else 2)
            assert schedule.splits == backward.endswith("split")
            assert schedule.trains == (backward != "none")


def test_the_orders_are_orders(tmp_path: Path) -> None:
    """Tests that the custom schedule shown can be read, and that orders go out and in as shown."""
    shown = re.search(r"```json\n(\{\"kind\": \"custom\".*?)\n```", README)
    commands = re.search(r"```sh\n([^`]*? export torch-orders .*?)```", README, re.DOTALL)
    assert shown and commands
    assert Schedule.model_validate(json.loads(shown[1])).stages == 2
    whole = f".venv/bin/partita plan problem.json -o answer.json > first.txt\n{commands[1]}"
    printed = shell(whole, tmp_path)
    first = (tmp_path / "first.txt").read_text(encoding="utf-8")
    assert printed == first.replace("1f1b", "custom")


def test_recompute_is_chosen() -> None:
    """Tests that the patch with recompute has the best plan that the text names."""
    best = patched("Recompute").candidates[0]
    ((layer, option),) = [pair for stage in best.stages for pair in stage.options.items()]
    said = f"`{layer}` runs by `{option}`, which `options` of its stage says: {seconds(best.metrics.iteration_time_s)}."
    assert said in PROSE


def test_degrees_are_chosen() -> None:
    """Tests that the patch with lists of degrees spans the configurations that the text counts, and has its best."""
    answer = patched("Degrees and a batch")
    best = answer.candidates[0]
    assert (best.tensor_parallel, best.replicas_per_node) == (1, best.data_parallel)
    said = (
        f"Of the {len(answer.schedules)} configurations the best has {len(best.stages)} stages, "
        f"{best.data_parallel} replicas of each on one node and {best.num_microbatches} microbatches of "
        f"{best.microbatch_size} sample: {seconds(best.metrics.iteration_time_s)}."
    )
    assert said in PROSE


def test_scenarios_are_weighed() -> None:
    """Tests that the patch with scenarios takes as long as the text says, and that the faster plan does not fit."""
    answer = patched("Scenarios")
    best, other = answer.candidates[0], answer.baselines["balanced_time"]
    times = {each.name: seconds(each.metrics.iteration_time_s) for each in best.scenarios}
    mean = seconds(best.metrics.iteration_time_s)
    assert f"takes {times['short']} when it is `short` and {times['long']} when it is `long`, {mean} on" in PROSE
    assert other.stage_sizes == (2, 1) and not other.fits
    assert other.metrics.iteration_time_s < best.metrics.iteration_time_s


def test_two_kinds_of_device_are_used() -> None:
    """Tests that the patch with two kinds of device has the stages that the text names."""
    best = patched("Two kinds of device").candidates[0]
    assert [stage.device for stage in best.stages] == ["old", "old", "card", "card"]
    *sizes, last = [str(len(stage.layers)) for stage in best.stages]
    said = f"has {len(best.stages)} stages of {', '.join(sizes)} and {last} layers, the first two on the slow node: "
    assert said + seconds(best.metrics.iteration_time_s) in PROSE


@pytest.mark.slow
def test_the_model_of_pytorch_is_planned(tmp_path: Path) -> None:
    """Tests that the function shown is captured and measured, and that the problem can be planned."""
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    code = re.search(r"```python\n# my_model.py\n(.*?)```", README, re.DOTALL)
    commands = re.search(r"```sh\n([^`]*? profile my_model:build .*?)```", README, re.DOTALL)
    assert code and commands
    (tmp_path / "my_model.py").write_text(code[1], encoding="utf-8")
    printed = shell(commands[1], tmp_path)
    assert printed.startswith("my_model:build: 7 layers, 2 stages, 1f1b, 8 microbatches, 2 devices: optimal")
