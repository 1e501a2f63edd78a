"""Probes against real servers: each kind, well and badly, and never beyond what the check names."""

import asyncio
import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from keepsake.core.clock import SECOND
from keepsake.services import addresses, endpoint, probes
from keepsake.store.checks import Check, Expect, Kind
from tests import watched
from tests.watched import Authority

pytestmark = pytest.mark.anyio


def check(kind: Kind, target: str, anywhere: bool = True, timeout: float = 5.0, **expect: Any) -> Check:
    return Check(
        org=1,
        bank=1,
        id=1,
        name="it",
        kind=kind,
        target=target,
        every=60 * SECOND,
        timeout=int(timeout * SECOND),
        created_at=0,
        due_at=0,
        wake_at=0,
        author="local",
        expect=Expect(**expect),
        anywhere=anywhere,
    )


async def reason(kind: Kind, target: str, **more: Any) -> str:
    outcome = await probes.probe(check(kind, target, **more))
    assert outcome.ok is (outcome.reason == "")
    assert outcome.latency > 0
    return outcome.reason


@pytest.fixture
def signer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """An authority that this process trusts."""
    made = watched.authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.bundle))
    endpoint.certificates.cache_clear()
    yield made
    monkeypatch.undo()
    endpoint.certificates.cache_clear()


async def test_a_page_that_answers_is_well() -> None:
    async with watched.web() as page:
        assert await reason("http", page.url(path="/health?deep=1"), contains="is well") == ""

    [head] = page.heard
    assert head.startswith("GET /health?deep=1 HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{page.port}\r\n" in head
    assert {line.partition(":")[0].lower() for line in head.split("\r\n")[1:] if line} == {
        *("host", "user-agent", "accept", "accept-encoding", "connection")
    }


@pytest.mark.parametrize(
    ("answer", "expect", "told"),
    [
        ("503 Service Unavailable", {}, "answered 503, not 200 to 399"),
        ("200 OK", {"status": (204, 204)}, "answered 200, not 204"),
        ("404 Not Found", {"status": (404, 404)}, ""),
        ("200 OK", {"contains": "on fire"}, "answered without the expected text"),
    ],
)
async def test_what_a_page_must_be_like(answer: str, expect: dict[str, Any], told: str) -> None:
    async with watched.web(answer) as page:
        assert await reason("http", page.url(), **expect) == told


async def test_a_text_is_found_where_two_chunks_meet_and_not_beyond_the_cap() -> None:
    async with watched.web(body=b"x" * 65_530 + b"all is well") as page:
        assert await reason("http", page.url(), contains="all is well") == ""
    async with watched.web(body=b"x" * 2 * probes.LARGEST + b"all is well") as page:
        assert await reason("http", page.url(), contains="all is well") == "answered without the expected text"


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async with watched.web() as inner, watched.web("302 Found", head=f"Location: {inner.url()}\r\n") as page:
        assert await reason("http", page.url()) == ""

    assert (len(page.heard), inner.heard) == (1, [])


@pytest.mark.parametrize("kind", ["http", "tcp", "redis", "postgres"])
async def test_nobody_there(kind: Kind) -> None:
    async with watched.silent() as gone:
        pass

    assert await reason(kind, f"http://127.0.0.1:{gone.port}/" if kind == "http" else f"127.0.0.1:{gone.port}") == (
        "cannot be reached: Connection refused"
    )


@pytest.mark.parametrize("kind", ["http", "redis", "postgres"])
async def test_whoever_says_nothing_is_left_after_the_time_limit(kind: Kind) -> None:
    async with watched.silent() as mute:
        target = mute.url() if kind == "http" else f"127.0.0.1:{mute.port}"
        assert await reason(kind, target, timeout=0.2) == "did not answer within 0.2 s"


async def test_a_page_that_drips_is_cut_off() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with watched.Watched(drip) as page:
        assert await reason("http", page.url(), contains="never", timeout=0.3) == "did not answer within 0.3 s"


async def test_endless_headers_and_no_http_at_all_are_failures() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X-More: " + b"x" * 8_000 + b"\r\n")
            await writer.drain()

    async with watched.Watched(endless) as page, watched.lines(b"+PONG\r\n\r\n") as redis:
        assert await reason("http", page.url()) == "did not answer as it should (RemoteProtocolError)"
        assert await reason("http", redis.url()) == "did not answer as it should (RemoteProtocolError)"


async def test_a_trusted_certificate_with_days_enough(signer: Authority) -> None:
    async with watched.web(tls=signer.server(days=30)) as page:
        assert await reason("http", page.url("https", "localhost"), tls_days=14) == ""
        assert await reason("http", page.url("https"), tls_days=14) == ""
        assert await reason("http", page.url("https", "localhost"), tls_days=40) == (
            "has a certificate that ends in 29 days, fewer than 40"
        )


async def test_certificates_that_nobody_should_trust(signer: Authority, tmp_path: Path) -> None:
    stranger = watched.authority(tmp_path)
    async with watched.web(tls=signer.server(days=-1)) as old, watched.web(tls=stranger.server(days=30)) as foreign:
        assert await reason("http", old.url("https")) == (
            "has a certificate that is not trusted: certificate has expired"
        )
        assert "not trusted" in await reason("http", foreign.url("https"))
    assert (old.heard, foreign.heard) == ([], [])


async def test_no_tls_where_there_should_be_some(signer: Authority) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    async with watched.Watched(plain) as page:
        assert (await reason("http", page.url("https"))).startswith("does not speak TLS as it should")


async def test_redis_is_pinged() -> None:
    async with watched.lines(b"+PONG\r\n") as open_, watched.lines(b"-NOAUTH Authentication required.\r\n") as closed:
        assert await reason("redis", f"redis://127.0.0.1:{open_.port}") == ""
        assert await reason("redis", f"127.0.0.1:{closed.port}") == ""
    assert open_.heard == ["PING\r\n"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", "answers PING with an error"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "does not speak Redis"),
        (b"+" + b"x" * 100_000, "does not speak Redis"),
    ],
)
async def test_redis_that_is_not_well(answer: bytes, told: str) -> None:
    async with watched.lines(answer) as server:
        assert await reason("redis", f"127.0.0.1:{server.port}") == told


async def test_a_port_is_open_or_not() -> None:
    async with watched.silent() as server:
        assert await reason("tcp", f"127.0.0.1:{server.port}") == ""
        assert await reason("tcp", f"tcp://localhost:{server.port}") == ""


async def test_a_real_postgresql_answers_a_ping(postgres_server: str) -> None:
    folder = parse_qs(urlsplit(postgres_server).query)["host"][0]

    async with watched.onto_socket(f"{folder}/.s.PGSQL.5432") as server:
        assert await reason("postgres", f"127.0.0.1:{server.port}") == ""
        assert await reason("postgres", f"postgresql://127.0.0.1:{server.port}/nothing") == ""
        assert await reason("postgres", f"127.0.0.1:{server.port}") == ""
    assert await reason("postgres", f"127.0.0.1:{server.port}") == "cannot be reached: Connection refused"


async def test_a_postgresql_that_turns_everyone_away_is_down() -> None:
    body = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"

    async def starting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"E" + (len(body) + 4).to_bytes(4, "big") + body)
        await reader.read()

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        await reader.read()

    async with watched.Watched(starting) as server, watched.Watched(other) as shell:
        assert await reason("postgres", f"127.0.0.1:{server.port}") == "is starting or ending (PostgreSQL 57P03)"
        assert await reason("postgres", f"127.0.0.1:{shell.port}") == "does not speak PostgreSQL"


async def test_a_name_is_resolved() -> None:
    assert await reason("dns", "localhost", addresses=("127.0.0.1", "::1")) == ""
    assert await reason("dns", "localhost", addresses=("203.0.113.7",)) == "has none of the expected addresses"
    assert await reason("dns", "no-such-name.invalid") == "cannot be found: the name has no address"


REFUSED = "is refused: its address is private, and only the owner of this machine may watch those"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0.0.0.0", "0"),
        *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]"),
        *("[2002:7f00:1::]", "[fe80::1]", "[fec0::1]", "[fd00::1]", "169.254.169.254", "[fd00:ec2::254]"),
        *("10.1.2.3", "172.31.0.1", "192.168.1.1", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    ],
)
@pytest.mark.parametrize("kind", ["http", "tcp", "redis", "postgres"])
async def test_a_stranger_s_check_reaches_no_private_address(
    kind: Kind, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled: list[str] = []

    async def dial(address: str, *_: object, **__: object) -> None:
        dialled.append(address)
        raise OSError(111, "nobody is dialled in this test")

    monkeypatch.setattr(asyncio, "open_connection", dial)

    async def sent(_: object, request: Any) -> None:
        await dial(str(request.url))

    monkeypatch.setattr("httpx.AsyncHTTPTransport.handle_async_request", sent)
    target = f"http://{host}:80/" if kind == "http" else f"{host}:5432"

    told = await reason(kind, target, anywhere=False)

    assert (told, dialled) == (REFUSED, [])


@pytest.mark.parametrize("found", [["10.0.0.7"], ["93.184.215.14", "10.0.0.7"], ["::ffff:10.0.0.7"]])
async def test_a_public_name_with_a_private_address_is_refused_at_every_connection(
    found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addresses, "lookup", lambda host: found)

    assert await reason("http", "https://rebound.example/", anywhere=False) == REFUSED
    assert await reason("dns", "rebound.example", anywhere=False) == REFUSED


async def test_a_name_is_asked_once_and_what_was_checked_is_what_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [["93.184.215.14"], ["127.0.0.1"]]
    dialled: list[str] = []

    async def dial(address: str, *_: object, **__: object) -> None:
        dialled.append(address)
        raise OSError(111, "nobody is dialled in this test")

    monkeypatch.setattr(addresses, "lookup", lambda host: answers.pop(0))
    monkeypatch.setattr(asyncio, "open_connection", dial)

    assert await reason("tcp", "rebound.example:80", anywhere=False) == "cannot be reached: Connection refused"
    assert await reason("tcp", "rebound.example:80", anywhere=False) == REFUSED
    assert dialled == ["93.184.215.14"]


@pytest.mark.parametrize("address", ["93.184.215.14", "8.8.8.8", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "1.1.1.1"])
def test_public_addresses_are_public(address: str) -> None:
    assert addresses.is_public(ipaddress.ip_address(address))
