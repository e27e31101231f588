"""A worker whose solves are doubles: python double_worker.py NAME-OF-DOUBLE SETTINGS-AS-JSON.

The processes of solves import this file again, so it imports what the worker alone needs where the worker begins.
"""

import sys

if __name__ == "__main__":
    import json
    from pathlib import Path
    from unittest import mock

    import solve_doubles

    from partita.service.commands import worker as working
    from partita.service.settings import Settings
    from partita.service.solving import solves

    work = getattr(solve_doubles, sys.argv[1])
    make = solves.Solves
    with mock.patch.object(solves, "Solves", lambda settings: make(settings, work)):
        settings = json.loads(sys.argv[2])
        if "data" in settings:
            settings["data"] = Path(settings["data"])
        working._work(Settings(**settings))
