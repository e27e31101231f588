"""Options that say what selective recompute saves."""

from typing import TYPE_CHECKING, Any

import typer

from partita.service.commands.failures import BAD_INPUT, Stopped
from partita.service.commands.user_code import load_function

if TYPE_CHECKING:
    from partita.models.pytorch.policies import Saving

_FORM = (
    "operations to save, such as selective=aten.mm,aten.addmm, or a policy function of torch.utils.checkpoint; NAME "
    "alone saves products, convolutions and attention. May be repeated."
)


def _option(what: str) -> Any:
    return typer.Option("--recompute", metavar="NAME[=OPERATIONS|=MODULE:FUNCTION]", help=f"{what}: {_FORM}")


MEASURED = _option("Measure recompute by a policy too, as the option NAME")
RUN = _option("What the option NAME of recompute saves, as it was profiled")


def policies_of(texts: list[str]) -> "dict[str, Saving]":
    """Read options of recompute: a name, and what is saved.

    Raises
    ------
    Stopped
        When one is none, or a name stands twice.
    """
    from partita.models.pytorch.policies import PRODUCTS, make_policies

    found: dict[str, Saving] = {}
    for text in texts:
        name, given, what = text.partition("=")
        if name in found:
            raise Stopped(f"--recompute: {name!r} is given twice; name one otherwise", BAD_INPUT)
        save: Saving = what.split(",") if given else PRODUCTS
        found[name] = load_function(what) if ":" in what else save
    try:
        make_policies(found)
    except ValueError as error:
        raise Stopped(f"--recompute: {error}", BAD_INPUT) from None
    return found
