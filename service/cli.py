"""The command ``partita``.

This module imports nothing large: the processes of solves import it again as their main module.
"""

import sys

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def main() -> None:
    """Run the command line."""
    try:
        from partita.service.commands.app import app

        app(prog_name="partita")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
