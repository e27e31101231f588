"""Many clients, and clients that mean no good: what they cost is at most their own request."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from batch_calls import ask_batch
from processes import doubled
from small_problems import as_bytes, chain

WAIT = {"Content-Type": "application/json", "Prefer": "wait=60"}


@pytest.fixture
def many(real_client):
    """Give a client for many requests at a time."""
    limits = httpx.Limits(max_connections=60)
    with httpx.Client(base_url=real_client.base_url, timeout=120, trust_env=False, limits=limits) as client:
        yield client


def test_stored_answers_come_fast(real_client):
    """Tests that answers from the store come at 20 per second and far more, one after the other."""
    body = as_bytes(chain(model__name="fast"))
    real_client.post("/v1/plans", content=body, headers=WAIT)
    begin = time.monotonic()
    for _ in range(100):
        assert "age" in real_client.post("/v1/plans", content=body, headers=WAIT).headers
    assert time.monotonic() - begin < 5


@pytest.mark.slow
def test_fifty_clients_with_large_bodies(many):
    """Tests that fifty problems of a megabyte at once are all answered or taken, and that the server stays awake."""
    names = [f"layer {index} {'x' * 900}" for index in range(1000)]
    layers = [{"name": name, "forward_s": 1.0, "output_bytes": 1000} for name in names]

    def ask(number):
        body = as_bytes(chain(model__layers=layers, training__num_microbatches=number + 1, search__time_limit_s=1))
        assert len(body) > 900_000
        return many.post("/v1/plans", content=body, headers={**WAIT, "Prefer": "respond-async"}).status_code

    with ThreadPoolExecutor(50) as pool:
        answers = [pool.submit(ask, number) for number in range(50)]
        slowest = 0.0
        while not all(answer.done() for answer in answers):
            begin = time.monotonic()
            assert many.get("/healthz").status_code == 200
            slowest = max(slowest, time.monotonic() - begin)
        assert {answer.result() for answer in answers} <= {202, 503}
    assert slowest < 5


def test_clients_that_send_nothing_block_nobody():
    """Tests that connections that are opened and left, or send half a request, leave room for others."""
    with doubled("nap", solves=1, max_waiting=10, body_timeout_s=1.0) as (_, client):
        place = (client.base_url.host, client.base_url.port)
        idle = [socket.create_connection(place) for _ in range(100)]
        for number, connection in enumerate(idle):
            if number % 2:
                connection.sendall(b"POST /v1/plans HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
        response = client.post("/v1/plans", content=b'{"nap_s": 0}', headers=WAIT)
        assert response.status_code == 200
        for connection in idle:
            connection.close()


def test_too_many_layers_cost_one_answer(real_client):
    """Tests that a problem of 100 000 layers is refused with the limit while others are answered."""
    layers = [{"name": f"l{index}", "forward_s": 1.0} for index in range(100_000)]
    body = as_bytes(chain(model__layers=layers))
    done = []
    sender = threading.Thread(
        target=lambda: done.append(
            httpx.post(f"{real_client.base_url}/v1/plans", content=body, headers=WAIT, timeout=90)
        )
    )
    sender.start()
    assert real_client.get("/healthz").status_code == 200
    sender.join()
    assert done[0].status_code == 422


def test_followers_of_a_batch_block_nobody():
    """Tests that many streams of results, left open, hold up neither requests nor the end of the server."""
    with doubled("nap", solves=1) as (process, client):
        batch = ask_batch(client, {"problems": [{"nap_s": 30}]}).json()["id"]
        streams = [socket.create_connection((client.base_url.host, client.base_url.port)) for _ in range(40)]
        for stream in streams:
            stream.sendall(f"GET /v1/batches/{batch}/results HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        begin = time.monotonic()
        assert client.get("/healthz").status_code == 200
        assert time.monotonic() - begin < 2
        process.terminate()
        assert process.wait(15) is not None
        for stream in streams:
            stream.close()
