"""The pictures of the README can be made again, and are those that it says."""

import re
from pathlib import Path

import pytest

from example_scripts import load

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

MAKER = load("make_pictures.py")


def texts(svg: str) -> list[str]:
    """Give all that is written in a picture, its title and description first."""
    return re.findall(r"<(?:title|desc|text|tspan)[^>]*>([^<]+)<", svg)


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """Make the pictures again."""
    pictures: dict[str, str] = MAKER.pictures(MAKER.planned())
    return pictures


@pytest.mark.parametrize("name", [f"{name}.svg" for name in MAKER.CHARTS])
def test_a_picture_is_up_to_date(made: dict[str, str], name: str) -> None:
    """Tests that what is written in the file is what the script writes now; fonts may differ, so bytes may."""
    kept = (MAKER.FOLDER / name).read_text(encoding="utf-8")
    assert len(texts(kept)) > 20
    assert texts(kept) == texts(made[name])


def test_the_readme_shows_them() -> None:
    """Tests that every picture is there with an alternative text, whose figures stand in it."""
    shown = {
        name: " ".join(alternative.split())
        for alternative, name in re.findall(r"!\[(.*?)\]\((.*?\.svg)\)", README, re.DOTALL)
    }
    assert set(shown) == {f"docs/pictures/{name}.svg" for name in MAKER.CHARTS}
    for name, alternative in shown.items():
        written = " ".join(texts((ROOT / name).read_text(encoding="utf-8")))
        figures = re.findall(r"[\d.]+ (?:MiB|ms)", alternative)
        assert all(figure in written for figure in figures), figures
        assert len(alternative) > 60
