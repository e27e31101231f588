"""Tests of the fingerprint of a problem."""

import copy
from typing import Any

from partita.models.digest import problem_digest
from partita.models.document import validate
from partita.models.problem import Problem


def digest(document: Any) -> str:
    """Give the digest of a document."""
    return problem_digest(validate(Problem, document))


def test_one_problem_has_one_digest(two_layers: Any) -> None:
    """Tests units, numbers, defaults and the order of keys."""
    other = copy.deepcopy(two_layers)
    other["cluster"]["devices"]["a100"]["memory_bytes"] = 85899345920
    other["training"] = {"num_microbatches": 4, "schedule": {"kind": "1f1b"}, "routing": "relay", "num_stages": None}
    other["model"]["layers"][0] = {"options": [], "forward_s": 1, "name": "embed"}
    other["search"] = {}
    assert digest(other) == digest(two_layers)


def test_other_problems_have_other_digests(two_layers: Any) -> None:
    """Tests a figure, a name, the seed, and a chain against a graph without edges."""
    changed = [copy.deepcopy(two_layers) for _ in range(4)]
    changed[0]["model"]["layers"][0]["forward_s"] = 1.5
    changed[1]["model"]["layers"][0]["name"] = "wte"
    changed[2]["search"] = {"seed": 1}
    changed[3]["model"]["tensors"] = []
    digests = {digest(document) for document in [two_layers, *changed]}
    assert len(digests) == 5


def test_a_digest_names_its_hash_and_does_not_change(two_layers: Any) -> None:
    """Tests the form, and that the digest of a problem is the same in every process and version."""
    assert digest(two_layers) == "sha256:01c5f503ea689b748c12426f274edf0d3b7e3599c9246912679b0ff86de4e0b6"
