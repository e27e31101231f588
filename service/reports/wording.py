"""Figures as people read them."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import floor, isfinite, log10
from re import sub

NO_BREAK = "\ufdd0"
"""Stands for a space at which no line is broken, until the text is written; no text of a user can hold it."""
SAME = 1e-9
"""Two figures that differ by less, relative to the larger, are the same: the rest is rounding."""
_BYTES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_SECONDS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def significant(number: float, digits: int = 4) -> str:
    """Write a number with so many significant digits, without an exponent where it is of ordinary size."""
    if number == 0 or not isfinite(number):
        return f"{number:g}"
    rounded = f"{number:.{digits - 1}e}"
    exponent = floor(log10(abs(float(rounded))))
    if not -5 <= exponent <= 12:
        return rounded
    return f"{number:,.{max(0, digits - 1 - exponent)}f}".replace(",", " ")


def unit_of_seconds(value: float) -> tuple[str, float]:
    """Give the unit that suits a time, and its seconds."""
    return next(((unit, size) for unit, size in _SECONDS if abs(value) >= size), _SECONDS[0])


def seconds(value: float) -> str:
    """Write a time in the unit that suits it."""
    for unit, size in _SECONDS:
        if abs(value) >= size:
            return f"{significant(value / size)} {unit}"
    return "0 s" if value == 0 else f"{significant(value)} s"


def sized(value: float) -> str:
    """Write bytes in the binary unit that suits them."""
    for unit, size in _BYTES:
        if abs(value) >= size:
            return f"{significant(value / size, 3)} {unit}"
    return f"{value:g} B"


def unit_of_bytes(value: float) -> tuple[str, float]:
    """Give the binary unit that suits so many bytes, and its bytes."""
    return next(((unit, float(size)) for unit, size in _BYTES if abs(value) >= size), ("bytes", 1.0))


def percent(fraction: float) -> str:
    """Write a fraction in percent; a small one that is not 0 does not become 0."""
    if fraction != 0 and abs(fraction) < 1e-4:
        return "under 0.01 %"
    return f"{fraction * 100:.2f} %" if abs(fraction) < 0.1 else f"{fraction * 100:.1f} %"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def spans(positions: Iterable[int]) -> list[tuple[int, int]]:
    """Join neighboring positions to spans of first and last."""
    found: list[tuple[int, int]] = []
    for position in sorted(positions):
        if found and found[-1][1] == position - 1:
            found[-1] = (found[-1][0], position)
        else:
            found.append((position, position))
    return found


def first_few(texts: Sequence[str], most: int) -> str:
    """Join texts by commas, the first few of many."""
    shown = ", ".join(texts[:most])
    return shown if len(texts) <= most else f"{shown} and {len(texts) - most} more"


def unbroken(text: str) -> str:
    """Keep every number with its unit on one line."""
    return sub(r"(?<=\d) (?=[\w%µ])", NO_BREAK, text)


def node_runs(devices: Iterable[str]) -> str:
    """Name the nodes of devices in their order, such as ``node0 x4, node1 x2``."""
    nodes = groupby(device.rpartition(":")[0] for device in devices)
    return ", ".join(f"{node} x{len(list(run))}" for node, run in nodes)


def device_ranges(devices: Iterable[str]) -> list[str]:
    """Join the devices of a node to ranges, such as ``node0:0-7``."""
    numbers: dict[str, list[int]] = {}
    for device in devices:
        node, _, number = device.rpartition(":")
        numbers.setdefault(node, []).append(int(number))
    return [
        f"{node}:{first}" if first == last else f"{node}:{first}-{last}"
        for node, found in numbers.items()
        for first, last in spans(found)
    ]
