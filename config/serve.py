"""Serve the embedded default and say where, once it answers: `make run`."""

import argparse
import http.client
import socket
import threading
import time
from http import HTTPStatus

from daphne.cli import CommandLineInterface


def main() -> None:
    """Run daphne on localhost until it is stopped."""
    parser = argparse.ArgumentParser(prog="python -m config.serve")
    parser.add_argument("--port", type=int, default=8081)
    port: int = parser.parse_args().port
    _check_free(port)
    threading.Thread(target=_announce, args=(port,), daemon=True).start()
    CommandLineInterface().run(
        ["-b", "127.0.0.1", "-p", str(port), "-v", "0", "config.asgi:application"]
    )


def _check_free(port: int) -> None:
    """End with the reason when somebody else answers there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SystemExit(
                f"port {port} cannot be used ({error.strerror});"
                " choose another: make run PORT=…"
            ) from error


def _announce(port: int) -> None:
    while not _answers(port):
        time.sleep(0.1)
    print(f"Cardwire is ready: http://localhost:{port}", flush=True)  # noqa: T201


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < HTTPStatus.INTERNAL_SERVER_ERROR
    except OSError:
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    main()
