"""A server whose solves are doubles: python double_server.py NAME-OF-DOUBLE SETTINGS-AS-JSON.

The processes of solves import this file again, so it imports what the server alone needs where the server begins.
"""

import sys

if __name__ == "__main__":
    import json
    from pathlib import Path
    from unittest import mock

    import solve_doubles

    from partita.service.api import app
    from partita.service.commands import serve as serving
    from partita.service.settings import Settings

    work = getattr(solve_doubles, sys.argv[1])
    create = app.create_app
    with mock.patch.object(app, "create_app", lambda settings: create(settings, work=work)):
        settings = json.loads(sys.argv[2])
        settings["data"] = Path(settings["data"])
        port = settings.pop("port", 0)
        serving._serve(Settings(**settings), serving._listening("127.0.0.1", port))
