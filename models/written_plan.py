"""Plans as text: which framework wrote it, and the field of a given plan that it fills."""

from partita.models.layer_bounds import deepspeed_parts
from partita.models.layout_text import written_list
from partita.models.megatron_arguments import LAYOUT, arguments_in
from partita.models.module_names import torchtitan_option


def written_plan(text: str) -> dict[str, object] | None:
    """Tell in which form a text is a plan: field and value of a ``GivenPlan``; None where in none.

    The name of the option or variable may stand before a list, as in a script; lines that begin with # are left out.
    """
    if text.lstrip().startswith(("{", "[")):
        return None  # JSON, whatever it holds
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    alone = written_list(text)
    if alone is not None:
        return dict(alone)
    arguments = arguments_in(text)
    if arguments is not None:
        layout = arguments.get(LAYOUT, "" if LAYOUT in text else None)
        return {"megatron_arguments": text.strip()} if layout is None else {"megatron_layout": layout}
    modules, parts = torchtitan_option(text), deepspeed_parts(text)
    if modules is not None:
        return {"torchtitan_parts": modules}
    return None if parts is None else {"deepspeed_parts": parts}
