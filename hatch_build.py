"""Writes the libraries that draw charts in a browser into the package, as one file, when it is built or installed."""

from pathlib import Path
from typing import Any

import vl_convert
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TARGET = "service/page/vega.js"
"""Where the file is written; git ignores it. The licenses of what is in it are in vega-licenses.txt beside it."""


class VegaHook(BuildHookInterface):  # type: ignore[type-arg]
    """Vendors Vega, Vega-Lite and Vega-Embed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file, and have it in the wheel although git ignores it."""
        path = Path(self.root, TARGET)
        path.parent.mkdir(exist_ok=True)
        path.write_text(bundle(), encoding="utf-8")
        build_data["artifacts"].append(f"/{TARGET}")


def bundle() -> str:
    """Give the libraries as a script that sets ``vega``, ``vegaLite`` and ``vegaEmbed`` on the window."""
    newest = vl_convert.get_vegalite_versions()[-1]
    vega, embed = vl_convert.get_vega_version(), vl_convert.get_vega_embed_version()
    head = f"/* Vega {vega}, Vega-Lite {newest}, Vega-Embed {embed} and what they need: vega-licenses.txt */"
    return f"{head}\n{vl_convert.javascript_bundle(vl_version=newest)}"
