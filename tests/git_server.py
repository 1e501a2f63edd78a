"""A loopback server that offers repositories over https, as a forge does, with the real `git http-backend`."""

import datetime
import ipaddress
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Forge:
    """Where it listens, the certificate to trust, and what it was asked."""

    url: str
    certificate: Path
    asked: list[str] = field(default_factory=list)
    authorised: list[str] = field(default_factory=list)
    #: Answered instead of a repository, with a place to go to.
    redirect: str = ""
    #: Refuse whoever does not say who they are.
    private: bool = False


def _certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "forge.pem", folder / "forge.key"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, plain)
    )
    return public, private


@contextmanager
def forge(root: Path, folder: Path) -> Iterator[Forge]:
    """Offer the repositories below a folder."""
    public, private = _certificate(folder)
    held = Forge("", public)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self._body())

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            told = b""
            while size := int(self.rfile.readline(), 16):
                told += self.rfile.read(size)
                self.rfile.readline()
            return told

        def _answer(self, given: bytes) -> None:
            held.asked.append(self.path)
            held.authorised.append(self.headers.get("Authorization") or "")
            if held.redirect or (held.private and not self.headers.get("Authorization")):
                self.send_response(301 if held.redirect else 401)
                self.send_header("Location", held.redirect + self.path)
                self.send_header("WWW-Authenticate", "Basic")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
                "CONTENT_LENGTH": str(len(given)),
            }
            done = subprocess.run(
                ["git", "http-backend"], env=environment, input=given, capture_output=True, check=False
            )
            head, _, body = done.stdout.partition(b"\r\n\r\n")
            lines = [line.decode().partition(": ") for line in head.split(b"\r\n")]
            status = next((int(value.split()[0]) for name, _, value in lines if name == "Status"), 200)
            self.send_response(status)
            for name, _, value in lines:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    wrapped = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wrapped.load_cert_chain(public, private)
    server.socket = wrapped.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    held.url = f"https://127.0.0.1:{server.server_address[1]}"
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
