"""Draws the pictures of README.md: plans the example with a slow link and writes docs/pictures/*.svg."""

from pathlib import Path

from partita.models.answer import Answer
from partita.models.problem import read_problem
from partita.service.charts.charts import Wanted, draw
from partita.service.charts.drawing import to_svg
from partita.solver.planner import plan_problem

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
EXAMPLE = "two-nodes-slow-link"
CHARTS = ("layers", "placement", "timeline")


def pictures(answer: Answer) -> dict[str, str]:
    """Draw an answer that holds its problem; give the texts of the files by their names."""
    return {f"{name}.svg": to_svg(draw(Wanted(name), answer)) for name in CHARTS}


def planned() -> Answer:
    """Plan the example."""
    problem = read_problem((ROOT / "examples" / f"{EXAMPLE}.json").read_bytes())
    return plan_problem(problem).model_copy(update={"problem": problem})


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pictures(planned()).items():
        path = FOLDER / name
        path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {len(text)} letters")


if __name__ == "__main__":
    main()
