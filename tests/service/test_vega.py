"""The libraries that draw charts in a browser, as building and installing write them into the package."""

from importlib.resources import files

import pytest
import vl_convert

from partita.service.charts.drawing import VEGA_LITE

PAGE = files("partita.service").joinpath("page")


@pytest.fixture(scope="module")
def script():
    return PAGE.joinpath("vega.js").read_text(encoding="utf-8")


def test_it_is_what_draws_here(script):
    """Tests that browsers draw with the same versions as partita plot."""
    head, _, rest = script.partition("\n")
    assert f"Vega-Lite {VEGA_LITE}, " in head
    assert rest == vl_convert.javascript_bundle(vl_version=VEGA_LITE)
    assert all(f"window.{name}=" in rest[-200:] for name in ("vega", "vegaLite", "vegaEmbed"))


def test_its_licenses_are_beside_it(script):
    """Tests that the licenses are those of the versions in it: whoever raises one looks at what it needs now."""
    head = script.partition("\n")[0].removeprefix("/* ").partition(" and ")[0]
    licenses = PAGE.joinpath("vega-licenses.txt").read_text(encoding="utf-8")
    assert licenses.startswith(f"{head} and what they need")
    for name in ("d3-array", "internmap", "lodash.debounce", "semver", "topojson-client", "vega-lite", "vega-tooltip"):
        assert f"{name} (" in licenses
