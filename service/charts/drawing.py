"""Draws specifications without a browser."""

from html import escape

from partita.service.charts.style import Spec

VEGA_LITE = "6.4"
"""The version that draws here."""
WIDTH = 1000
"""Of a plot that would fill its container, in pixels."""
PNG_SCALE = 2
"""Pixels of a PNG per pixel of the chart."""


def to_svg(spec: Spec) -> str:
    """Draw a chart as SVG, with its title and description for those who do not see it."""
    import vl_convert

    head, _, rest = vl_convert.vegalite_to_svg(_still(spec), vl_version=VEGA_LITE).partition(">")
    said = f"<title>{escape(spec['title']['text'])}</title><desc>{escape(spec['description'])}</desc>"
    return f'{head} role="img">{said}{rest}'


def to_png(spec: Spec) -> bytes:
    """Draw a chart as PNG."""
    import vl_convert

    return vl_convert.vegalite_to_png(_still(spec), vl_version=VEGA_LITE, scale=PNG_SCALE)


def _still(spec: Spec) -> Spec:
    """Leave out what only a browser has use for: a container's width, the zoom, and clipping at its edges.

    The identities of clipping paths would differ from one drawing to the next.
    """
    layers = []
    for layer in spec["layer"]:
        mark = {name: value for name, value in layer["mark"].items() if name != "clip"}
        layers.append({name: value for name, value in layer.items() if name != "params"} | {"mark": mark})
    return {**spec, "layer": layers, "width": WIDTH if spec["width"] == "container" else spec["width"]}
