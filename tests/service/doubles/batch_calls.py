"""Batches as tests ask for them and read their results."""

import json

from small_problems import as_bytes

JSON = {"Content-Type": "application/json"}


def ask_batch(client, body, headers=JSON):
    """Send a batch, as values or as the bytes that they are."""
    content = body if isinstance(body, bytes) else as_bytes(body)
    return client.post("/v1/batches", content=content, headers=headers)


def results(client, batch):
    """Give all results of a batch by their index, once they are there; none may come twice."""
    with client.stream("GET", f"/v1/batches/{batch}/results", timeout=60) as response:
        assert response.headers["content-type"].startswith("application/x-ndjson")
        every = [json.loads(line) for line in response.iter_lines()]
    assert len({result["index"] for result in every}) == len(every)
    return {result["index"]: result for result in every}
