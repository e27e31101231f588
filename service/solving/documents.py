"""Checks a profile or a cluster that is to be stored, and writes it in the one way that its digest is taken of."""

import hashlib
import json

from partita.models.cluster import Cluster
from partita.models.document import validate
from partita.models.profile import ModelProfile
from partita.service.settings import Settings
from partita.service.solving.limits import OverLimit
from partita.service.solving.references import DocumentKind


def canonical(kind: DocumentKind, data: object, settings: Settings) -> bytes:
    """Give the canonical JSON of a document that ``read_json`` read: sorted keys, no defaults, sizes as numbers.

    Two ways of writing one document are so the same bytes, and have one digest.

    Raises
    ------
    InvalidInput
        When it is no such document, or is larger than this server allows.
    """
    document: ModelProfile | Cluster
    if kind == "profile":
        document = validate(ModelProfile, data)
        count, most, place = len(document.layers), settings.max_layers, "layers"
    else:
        document = validate(Cluster, data)
        count, most, place = document.num_devices, settings.max_devices, "nodes"
    if count > most:
        what = "layers" if kind == "profile" else "devices"
        raise OverLimit.at(f"/{place}", f"{count} {what}; this server allows at most {most}", str(count))
    values = document.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def content_digest(text: bytes) -> str:
    """Give the digest of canonical JSON, which is that of its bytes."""
    return "sha256:" + hashlib.sha256(text).hexdigest()
