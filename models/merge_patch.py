"""JSON merge patches: a document with some members replaced (RFC 7396)."""


def merged(base: object, patch: object) -> object:
    """Give the base with the patch applied; neither is changed.

    An object replaces the members of the same names, deeply; null removes a member; anything else, lists too, takes the
    place of what was there.
    """
    if not isinstance(patch, dict):
        return patch
    result = dict(base) if isinstance(base, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
