"""``python -m partita.service`` is the command ``partita``."""

from partita.service.cli import main

if __name__ == "__main__":
    main()
