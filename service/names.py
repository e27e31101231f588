"""What people may call their keys and stored documents."""

import re

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""The pattern of such a name."""

NAME_RULE = "1 to 100 letters, digits, '.', '_' and '-', the first a letter or digit"
"""The same in words."""


def is_name(text: str) -> bool:
    """Tell whether a text may be a name."""
    return re.fullmatch(NAME, text) is not None
