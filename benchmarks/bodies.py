"""What files of 200 MB cost on their way up and down, and whom they hold up."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection

from benchmarks.clients import undisturbed
from benchmarks.results import Result, at_most
from benchmarks.servers import CARDWIRE, Server, data_directory
from benchmarks.wire_client import BUFFER_BYTES, PATIENCE_S, WireConnection

BODY_BYTES = 200_000_000

PARALLEL = 5

PING = '{"type":"ping"}'

SESSION_ID = "benchmark"

_PIECE = bytes(1024 * 1024)

_BEFORE = (
    '--frame\r\nContent-Disposition: form-data; name="session_id"\r\n\r\n'
    f"{SESSION_ID}\r\n"
    '--frame\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
).encode()
_AFTER = b"\r\n--frame--\r\n"

#: What is transferred, told the port and the path of a file that is there.
Transfer = Callable[[int, str], None]


def large_bodies() -> list[Result]:
    """Five times 200 MB at once, each way, while another client pings."""
    return [
        _measure("downloads-5x200-mb", _download),
        _measure("uploads-5x200-mb", _upload),
    ]


def _measure(name: str, transfer: Transfer) -> Result:
    with (
        data_directory() as data_dir,
        Server(CARDWIRE, data_dir) as server,
        server.connect() as other,
        ThreadPoolExecutor(PARALLEL) as pool,
        undisturbed(),
    ):
        other.receive()
        other.send(json.dumps({"type": "session.create", "session_id": SESSION_ID}))
        other.receive()
        path = _send(server.port)
        idle_ping_s = max(_ping(other) for _ in range(20))
        memory_bytes = server.memory_bytes()
        server.forget_peak_memory()
        start = time.perf_counter()
        transfers = [pool.submit(transfer, server.port, path) for _ in range(PARALLEL)]
        pings_s = [_ping(other)]
        while not all(each.done() for each in transfers):
            pings_s.append(_ping(other))
        for each in transfers:
            each.result()
        seconds = time.perf_counter() - start
        rise_bytes = server.peak_memory_bytes() - memory_bytes
    total_bytes = PARALLEL * BODY_BYTES
    return Result(
        name,
        {
            "memory_rise_mb": rise_bytes / 1e6,
            "memory_ratio": rise_bytes / total_bytes,
            "slowest_ping_s": max(pings_s),
            "idle_ping_s": idle_ping_s,
            "mb_per_s": total_bytes / 1e6 / seconds,
        },
        (at_most("memory_rise_mb", 100), at_most("slowest_ping_s", 1)),
    )


def _ping(connection: WireConnection) -> float:
    start = time.perf_counter()
    connection.send(PING)
    connection.receive()
    return time.perf_counter() - start


def _download(port: int, path: str) -> None:
    buffer, size = bytearray(BUFFER_BYTES), 0
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        client.sendall(
            f"GET {path} HTTP/1.1\r\n"
            "Host: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
        )
        while count := client.recv_into(buffer):
            size += count
    if size < BODY_BYTES:
        raise RuntimeError(f"a download ended after {size} bytes")


def _upload(port: int, _path: str) -> None:
    _send(port)


def _send(port: int) -> str:
    """Upload a file and return the path of its content."""
    headers = {
        "Content-Type": "multipart/form-data; boundary=frame",
        "Content-Length": str(len(_BEFORE) + BODY_BYTES + len(_AFTER)),
    }
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request("POST", "/v1/artifacts", _form(), headers)
        response = connection.getresponse()
        told = response.read()
    if response.status != 201:
        raise RuntimeError(f"an upload was answered with {response.status}: {told!r}")
    return f"/v1/artifacts/{json.loads(told)['artifact_id']}/content"


def _form() -> Iterator[bytes]:
    yield _BEFORE
    for at in range(0, BODY_BYTES, len(_PIECE)):
        yield _PIECE[: BODY_BYTES - at]
    yield _AFTER
