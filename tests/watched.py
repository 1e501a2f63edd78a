"""Things to watch: real servers on loopback that can be taken down and brought back, and certificates made here."""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Conversation = Callable[[Reader, Writer], Awaitable[None]]


@dataclass
class Page:
    """What a web server says."""

    answer: str
    body: bytes


@dataclass
class Watched:
    """A server that talks as it is told; its port stays the same when it comes back."""

    talk: Conversation
    tls: ssl.SSLContext | None = None
    port: int = 0
    #: What it says where it is a web server; a test may change it.
    page: Page = field(default_factory=lambda: Page("", b""))
    #: The head of every request that came.
    heard: list[str] = field(default_factory=list)
    _server: asyncio.Server | None = None

    async def up(self) -> "Watched":
        self._server = await asyncio.start_server(self._met, "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def down(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def __aenter__(self) -> "Watched":
        return await self.up()

    async def __aexit__(self, *_: object) -> None:
        await self.down()

    async def _met(self, reader: Reader, writer: Writer) -> None:
        try:
            await self.talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    def url(self, scheme: str = "http", host: str = "127.0.0.1", path: str = "/") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


def web(
    answer: str = "200 OK", body: bytes = b"all is well", head: str = "", tls: ssl.SSLContext | None = None
) -> Watched:
    """A web server with one answer, which may be changed."""

    async def talk(reader: Reader, writer: Writer) -> None:
        made.heard.append((await reader.readuntil(b"\r\n\r\n")).decode())
        told = f"HTTP/1.1 {page.answer}\r\nContent-Length: {len(page.body)}\r\nConnection: close\r\n{head}\r\n"
        writer.write(told.encode() + page.body)
        await writer.drain()

    page = Page(answer, body)
    made = Watched(talk, tls, page=page)
    return made


def lines(*answers: bytes) -> Watched:
    """A server that answers each line with the next of these, as Redis does."""

    async def talk(reader: Reader, writer: Writer) -> None:
        for answer in answers:
            made.heard.append((await reader.readline()).decode())
            writer.write(answer)
            await writer.drain()
        await reader.read()

    made = Watched(talk)
    return made


def silent() -> Watched:
    """A server that takes a connection and never says anything."""

    async def talk(reader: Reader, writer: Writer) -> None:
        await reader.read()

    return Watched(talk)


def onto_socket(path: str) -> Watched:
    """A port that leads to a Unix socket, such as that of a PostgreSQL."""

    async def talk(reader: Reader, writer: Writer) -> None:
        there, back = await asyncio.open_unix_connection(path)

        async def pumped(one: Reader, other: Writer) -> None:
            while chunk := await one.read(4096):
                other.write(chunk)
                await other.drain()

        pumps = [asyncio.ensure_future(pumped(reader, back)), asyncio.ensure_future(pumped(there, writer))]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        back.close()

    return Watched(talk)


@dataclass(frozen=True)
class Authority:
    """Who signs certificates in a test."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def bundle(self) -> Path:
        """The file that makes it trusted."""
        path = self.folder / "authority.pem"
        path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def server(self, days: float) -> ssl.SSLContext:
        """What a server on 127.0.0.1 and `localhost` shows, valid for so many days more."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        made = (
            _begun("localhost", key, days)
            .issuer_name(self.certificate.subject)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        path = self.folder / f"server-{days}.pem"
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def authority(folder: Path) -> Authority:
    """A new one."""
    key = ec.generate_private_key(ec.SECP256R1())
    usage = dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False)
    made = (
        _begun("Keepsake tests", key, 365)
        .issuer_name(_name("Keepsake tests"))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=True,
                crl_sign=True,
                encipher_only=False,
                decipher_only=False,
                **usage,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(folder, key, made)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(name: str, key: ec.EllipticCurvePrivateKey, days: float) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=400))
        .not_valid_after(now + datetime.timedelta(days=days))
    )
