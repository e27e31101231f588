"""Tests merge patches with the examples of RFC 7396, appendix A."""

import json

import pytest

from partita.models.merge_patch import merged


@pytest.mark.parametrize(
    ("base", "patch", "result"),
    [
        ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
        ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
        ('{"a":"b"}', '{"a":null}', "{}"),
        ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
        ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
        ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
        ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
        ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
        ('["a","b"]', '["c","d"]', '["c","d"]'),
        ('{"a":"b"}', '["c"]', '["c"]'),
        ('{"a":"foo"}', "null", "null"),
        ('{"a":"foo"}', '"bar"', '"bar"'),
        ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
        ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
        ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
    ],
)
def test_examples_of_the_standard(base: str, patch: str, result: str) -> None:
    """Tests one example, and that neither the base nor the patch is changed by it."""
    before = json.loads(base), json.loads(patch)
    assert merged(*before) == json.loads(result)
    assert before == (json.loads(base), json.loads(patch))
