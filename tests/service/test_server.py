"""A real server over a real network: large, slow and broken requests, and clients that leave."""

import contextlib
import json
import re
import signal
import socket
import threading
import time

import httpx
import pytest
from processes import alive, doubled, pid_in, until
from small_problems import as_bytes, chain

JSON = {"Content-Type": "application/json", "Prefer": "wait=30"}


def raw(client, request, *, leave_after=None):
    """Send bytes as they are, and give what comes back."""
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=20) as connection:
        connection.sendall(request)
        if leave_after is not None:
            leave_after()
            return b""
        received = b""
        while b"\r\n\r\n" not in received or _length(received) > len(received.split(b"\r\n\r\n", 1)[1]):
            part = connection.recv(65536)
            if not part:
                break
            received += part
        return received


def _length(received):
    found = re.search(rb"content-length: (\d+)", received.lower())
    return int(found[1]) if found else 0


def post(headers, body=b""):
    """Write a request by hand."""
    lines = [
        "POST /v1/plans HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        "Prefer: wait=30",
        *headers,
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/page/main.js", "/page/vega.js"])
def test_pages_are_asked_for_without_their_content(real_client, path):
    """Tests that HEAD tells of pages and their files what GET does, and that other methods are told of both."""
    whole, head = real_client.get(path), real_client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    each_time = {"date": "", "x-request-id": ""}
    assert {**head.headers, **each_time} == {**whole.headers, **each_time}
    assert int(head.headers["content-length"]) == len(whole.content) > 100
    if "etag" in whole.headers:
        assert real_client.head(path, headers={"If-None-Match": whole.headers["etag"]}).status_code == 304
    other = real_client.put(path)
    assert (other.status_code, other.headers["allow"]) == (405, "GET, HEAD")


def test_no_such_file_of_the_page(real_client):
    """Tests that HEAD finds no more than GET does."""
    assert real_client.head("/page/settings.py").status_code == 404


def test_plans_over_the_network(real_client):
    """Tests that a user's first request works."""
    response = real_client.post("/v1/plans", content=as_bytes(chain()), headers=JSON)
    assert response.status_code == 200
    assert response.json()["status"] == "optimal"


def test_concurrent_requests(real_client):
    """Tests that requests at the same time all get their answers."""
    statuses = []

    def ask():
        with httpx.Client(base_url=real_client.base_url, timeout=60, trust_env=False) as client:
            statuses.append(client.post("/v1/plans", content=as_bytes(chain()), headers=JSON).status_code)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 6


def test_oversize_body_is_refused_before_it_is_sent():
    """Tests that a declared length beyond the limit is refused at once."""
    with doubled("nap", max_body_bytes=1000) as (_, client):
        answer = raw(client, post(["Content-Length: 99999999999999999999999"]))
        assert b" 413 " in answer.split(b"\r\n")[0] or b" 400 " in answer.split(b"\r\n")[0]
        answer = raw(client, post(["Content-Length: 5000000000"]))
        assert b" 413 " in answer.split(b"\r\n")[0]
        assert b"larger than 1000 bytes" in answer


def test_oversize_chunked_body_is_refused_on_the_way():
    """Tests that a body without a declared length is refused as soon as it is too large."""
    with doubled("nap", max_body_bytes=1000) as (_, client):
        chunk = b"190\r\n" + b" " * 0x190 + b"\r\n"
        answer = raw(client, post(["Transfer-Encoding: chunked"], chunk * 3))
        assert b" 413 " in answer.split(b"\r\n")[0]
        assert client.get("/healthz").status_code == 200


def test_late_body():
    """Tests that a body that does not come does not hold its place for ever."""
    with doubled("nap", body_timeout_s=0.3) as (_, client):
        answer = raw(client, post(["Content-Length: 100"], b"{"))
        assert b" 408 " in answer.split(b"\r\n")[0]
        assert b"/docs#body-late" in answer


def test_client_that_leaves_cancels_its_solve(tmp_path):
    """Tests that a solve ends when nobody waits for it, and that its slot is free again."""
    with doubled("nap", solves=1, slot_wait_s=5) as (_, client):
        path = tmp_path / "pid"
        body = json.dumps({"pid_file": str(path), "nap_s": 60}).encode()
        raw(client, post([f"Content-Length: {len(body)}"], body), leave_after=lambda: pid_in(path))
        pid = int(path.read_text())
        until(lambda: not alive(pid))
        assert client.post("/v1/plans", content=b'{"nap_s": 0}', headers=JSON).status_code == 200


def test_client_that_leaves_while_it_sends():
    """Tests that half a body is no error, and leaves nothing behind."""
    with doubled("nap", solves=1, max_waiting=0) as (process, client):
        raw(client, post(["Content-Length: 100"], b"{"), leave_after=lambda: time.sleep(0.1))
        until(lambda: client.post("/v1/plans", content=b'{"nap_s": 0}', headers=JSON).status_code == 200)
    assert not any("Traceback" in line for line in process.log)


def test_health_while_a_large_body_is_read(real_client):
    """Tests that reading and checking a large problem does not hold up other requests."""
    layers = [{"name": f"l{index}", "forward_s": "no number", "options": [{}] * 9} for index in range(20_000)]
    body = as_bytes(chain(model__layers=layers))
    assert len(body) > 1_000_000
    slowest, done = 0.0, threading.Event()

    def watch():
        nonlocal slowest
        with httpx.Client(base_url=real_client.base_url, timeout=60, trust_env=False) as client:
            while not done.is_set():
                begin = time.monotonic()
                assert client.get("/healthz").status_code == 200
                slowest = max(slowest, time.monotonic() - begin)

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.monotonic()
    response = real_client.post("/v1/plans", content=body, headers=JSON)
    took = time.monotonic() - begin
    done.set()
    watcher.join()
    assert response.status_code == 422
    assert len(response.content) < 100_000
    assert slowest < max(0.5, took / 2)


def test_crash_costs_one_answer():
    """Tests that a native crash is a problem document and that the server goes on."""
    with doubled("crash") as (process, client):
        for _ in range(3):
            response = client.post("/v1/plans", content=b"{}", headers=JSON)
            assert response.status_code == 500
            assert response.json()["type"] == "/docs#solve-crashed"
        assert client.get("/healthz").status_code == 200
    assert any(response.json()["instance"] in line for line in process.log)


@pytest.mark.parametrize(("end", "exit_code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, None)])
def test_stops_when_told(tmp_path, end, exit_code):
    """Tests that a server that is told to stop does so soon, with its solves."""
    with doubled("loop", shutdown_s=1) as (process, client):
        path = tmp_path / "pid"
        body = json.dumps({"pid_file": str(path)}).encode()
        sender = threading.Thread(target=_swallow, args=(client, body))
        sender.start()
        pid = pid_in(path)
        process.send_signal(end)
        code = process.wait(10)
        sender.join()
        assert exit_code is None or code == exit_code
        until(lambda: not alive(pid))


def _swallow(client, body):
    with contextlib.suppress(httpx.TransportError):
        client.post("/v1/plans", content=body, headers=JSON)


def test_killed_server_leaves_no_process(tmp_path):
    """Tests that even a server that is killed takes its solves with it."""
    with doubled("loop") as (process, client):
        path = tmp_path / "pid"
        sender = threading.Thread(target=_swallow, args=(client, json.dumps({"pid_file": str(path)}).encode()))
        sender.start()
        pid = pid_in(path)
        process.kill()
        sender.join()
        until(lambda: not alive(pid))
