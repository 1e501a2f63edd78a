"""A real HTTP target: what enrolled calls and announcements reach, in a thread of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Target:
    """What was received."""

    url: str = ""
    received: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def at(self, path: str) -> list[tuple[str, str, dict[str, str], bytes]]:
        return [one for one in self.received if one[1].startswith(path)]


@contextmanager
def target() -> Iterator[Target]:
    """Answers what its path says: /status/503, /moved, /slow, /large; all else with an echo of its token."""
    made = Target()
    free = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            made.received.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            status = int(self.path.rpartition("/")[2]) if self.path.startswith("/status/") else 200
            told = f"took {self.headers.get('x-token')} and {body.decode()}\n".encode()
            if self.path.startswith("/slow"):
                free.wait(30)
            self.send_response(302 if self.path.startswith("/moved") else status)
            if self.path.startswith("/moved"):
                self.send_header("Location", f"{made.url}/elsewhere")
            if self.path.startswith("/large"):
                told = b"x" * 3_000_000
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(told)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _answer

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        free.set()
        server.shutdown()
        server.server_close()
