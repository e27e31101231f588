"""Small documents, and a way to look at why one is refused."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from partita.models.document import validate
from partita.models.errors import Fault, InvalidInput
from partita.models.problem import Problem

Document = dict[str, Any]
Refused = Callable[..., dict[str, Fault]]

TWO_LAYERS: Document = {
    "model": {"layers": [{"name": "embed", "forward_s": 1.0}, {"name": "head", "forward_s": 2.0}]},
    "cluster": {
        "devices": {"a100": {"memory_bytes": "80GiB"}},
        "nodes": [{"name": "node0", "device": "a100", "count": 2, "fabric": {"bandwidth_bytes_per_s": 3e11}}],
    },
    "training": {"schedule": "1f1b", "num_microbatches": 4},
}


@pytest.fixture
def two_layers() -> Document:
    """Two layers on two devices of one node: the smallest complete problem."""
    return copy.deepcopy(TWO_LAYERS)


@pytest.fixture
def five_layers() -> Document:
    """Five layers, a to e, on four devices of one node."""
    document = copy.deepcopy(TWO_LAYERS)
    document["model"]["layers"] = [{"name": name, "forward_s": 1.0} for name in "abcde"]
    document["cluster"]["nodes"][0]["count"] = 4
    return document


@pytest.fixture
def refused() -> Refused:
    """Give the faults of a document by their pointers; fails when it is accepted."""

    def faults_of(document: object, model_type: Any = Problem) -> dict[str, Fault]:
        with pytest.raises(InvalidInput) as caught:
            validate(model_type, document)
        return {fault.pointer: fault for fault in caught.value.faults}

    return faults_of
