"""A fingerprint of a problem."""

import hashlib
import json

from partita.models.problem import Problem


def problem_digest(problem: Problem) -> str:
    """Give ``sha256:`` and the hash of the problem's canonical JSON.

    Keys are sorted, defaults are left out and quantities are numbers, so that two ways of writing one problem
    ("80GiB" and 85899345920) have one digest.
    """
    canonical = json.dumps(
        problem.model_dump(mode="json", exclude_defaults=True), sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
