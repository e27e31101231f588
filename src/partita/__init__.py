"""Partita plans pipeline parallelism and proves how good its plans are.

The three parts are ``partita.models`` (what a problem and an answer are), ``partita.solver`` (how plans are found) and
``partita.service`` (how they are asked for). Imports go one way: models, then solver, then service.
"""

__version__ = "0.1.0"
