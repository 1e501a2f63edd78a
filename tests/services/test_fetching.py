"""Reading at addresses that strangers chose: never anything of ours, never more than asked for, never for long."""

import asyncio
import gzip
import itertools
import time
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from keepsake.core.errors import KeepsakeError, Unavailable
from keepsake.core.target import Target
from keepsake.services import addresses, charset, endpoint, extract, robots, safefetch
from keepsake.services.extract import Document
from keepsake.services.robots import Robots
from keepsake.services.safefetch import Reader
from tests import watched
from tests.services import hostile

pytestmark = pytest.mark.anyio
PUBLIC = "93.184.216.34"
Answers = Callable[[httpx.Request], httpx.Response]


class Body(httpx.AsyncByteStream):
    """A body as it comes over a wire, in one piece."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.content


def answered(status: int, content: bytes = b"") -> httpx.Response:
    return httpx.Response(status, stream=Body(content))


class Dialler(httpx.AsyncBaseTransport):
    """Notes whom we would have called, and answers instead."""

    def __init__(self, answers: Answers = lambda request: answered(200, b"hi")) -> None:
        self.answers = answers
        self.called: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.called.append(request.url.host)
        return self.answers(request)


class Endless(httpx.AsyncByteStream):
    """A body that does not end."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65_536


async def looked_up(host: str) -> list[str]:
    """Every name that is not among the hostile ones is a public host."""
    return addresses.literal(host) or hostile.NAMES.get(host.lower(), [PUBLIC])


async def test_of_hundreds_of_hostile_addresses_none_is_dialled() -> None:
    dialler, refused = Dialler(), 0
    reader = Reader(resolve=looked_up, transport=dialler)

    for url in hostile.urls():
        with pytest.raises(KeepsakeError):
            await reader.read(url, 1_000)
        assert dialler.called == [], url
        refused += 1

    assert refused > 400


async def test_a_redirect_to_any_of_them_is_not_followed() -> None:
    # What is no address by itself is one beside the page that names it.
    targets = [url for url in hostile.urls() if "://" in url.partition("?")[0][:12] and not url.endswith("x" * 9)]

    for url in targets:
        moved = url.encode("utf-8")
        dialler = Dialler(lambda request, moved=moved: httpx.Response(302, headers=[(b"Location", moved)]))  # type: ignore[misc]
        with pytest.raises(KeepsakeError):
            await Reader(resolve=looked_up, transport=dialler).read("https://a.example/", 1_000)
        assert set(dialler.called) == {PUBLIC}, url

    assert len(targets) > 300


async def test_a_name_that_changes_is_dialled_only_where_it_was_checked() -> None:
    turns = itertools.cycle([[PUBLIC], ["10.0.0.1"]])
    asked: list[str] = []

    async def rebinding(host: str) -> list[str]:
        asked.append(host)
        return next(turns)

    dialler = Dialler()
    reader = Reader(resolve=rebinding, transport=dialler)
    outcomes = []
    for _ in range(200):
        try:
            outcomes.append((await reader.read("http://rebinding.example/", 1_000)).status)
        except Unavailable:
            outcomes.append(0)

    assert (outcomes, len(asked)) == ([200, 0] * 100, 200)
    assert dialler.called == [PUBLIC] * 100


async def test_every_hop_is_checked_anew_and_five_are_enough() -> None:
    def moving(request: httpx.Request) -> httpx.Response:
        step = int(request.url.path[1:] or 0)
        return httpx.Response(302, headers={"Location": f"/{step + 1}"}) if step < 5 else answered(200, b"x")

    checked: list[str] = []

    async def check(target: Target) -> None:
        checked.append(target.path)

    reader = Reader(resolve=looked_up, transport=Dialler(moving))
    answer = await reader.read("http://a.example/", 1_000, check)

    assert (answer.url, answer.body) == ("http://a.example/5", b"x")
    assert checked == ["/", "/1", "/2", "/3", "/4", "/5"]
    looping = Dialler(lambda request: httpx.Response(301, headers={"Location": "/"}))
    with pytest.raises(Unavailable, match="more than 5 times"):
        await Reader(resolve=looked_up, transport=looping).read("http://a.example/", 1_000)
    assert len(looping.called) == 6


async def test_what_the_operator_allows_is_read_there_and_only_there() -> None:
    async with watched.web() as page, watched.web() as other:
        reader = Reader(frozenset({f"127.0.0.1:{page.port}"}))
        answer = await reader.read(page.url(path="/a b?c#d"), 1_000)
        with pytest.raises(KeepsakeError, match="KEEPSAKE_FETCH_ALLOW"):
            await reader.read(other.url(), 1_000)
        with pytest.raises(KeepsakeError, match="its address is private"):
            await reader.read("http://127.0.0.1/", 1_000)

    assert (answer.status, answer.body, other.heard) == (200, b"all is well", [])
    [head] = page.heard
    assert head.startswith("GET /a%20b?c HTTP/1.1\r\n")
    assert "User-Agent: Keepsake/" in head
    assert "cookie" not in head.lower()


async def test_a_pinned_connection_keeps_the_name_for_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = watched.authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(signer.bundle))
    endpoint.certificates.cache_clear()

    async def here(host: str) -> list[str]:
        return ["127.0.0.1"]

    async with watched.web(tls=signer.server(90)) as page:
        allowed = frozenset({f"localhost:{page.port}", f"other.example:{page.port}"})
        answer = await Reader(allowed, here).read(page.url("https", "localhost"), 1_000)
        with pytest.raises(Unavailable, match="certificate that is not trusted"):
            await Reader(allowed, here).read(page.url("https", "other.example"), 1_000)
    monkeypatch.undo()
    endpoint.certificates.cache_clear()

    assert answer.body == b"all is well"
    assert len(page.heard) == 1


@pytest.mark.parametrize(
    ("body", "encoding", "told"),
    [
        (gzip.compress(b"hello", mtime=0), "gzip", b"hello"),
        (zlib.compress(b"hello"), "deflate", b"hello"),
        (zlib.compress(b"hello", wbits=-15), "deflate", b"hello"),
        (b"hello", "identity", b"hello"),
        (b"hello", "gzip", None),
        (b"hello", "br", None),
        (gzip.compress(gzip.compress(b"hello", mtime=0), mtime=0), "gzip, gzip", None),
    ],
)
async def test_compression_is_undone_once_and_only_as_asked(body: bytes, encoding: str, told: bytes | None) -> None:
    dialler = Dialler(lambda request: httpx.Response(200, headers={"Content-Encoding": encoding}, stream=Body(body)))
    reader = Reader(resolve=looked_up, transport=dialler)

    if told is None:
        with pytest.raises(Unavailable, match="compressed"):
            await reader.read("http://a.example/", 1_000)
    else:
        assert (await reader.read("http://a.example/", 1_000)).body == told


async def test_a_bomb_and_an_endless_body_are_cut_at_what_was_asked_for() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    packed = Dialler(lambda request: httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=Body(bomb)))
    endless = Dialler(lambda request: httpx.Response(200, stream=Endless()))

    for dialler in (packed, endless):
        answer = await Reader(resolve=looked_up, transport=dialler).read("http://a.example/", 100_000)
        assert (len(answer.body), answer.is_whole) == (100_000, False)


# --- robots ----------------------------------------------------------------------------------------------------------


def site(status: int = 200, said: bytes = b"") -> Dialler:
    return Dialler(
        lambda request: answered(status, said) if request.url.path == "/robots.txt" else answered(200, b"page")
    )


async def may(dialler: Dialler, url: str, rules: Robots | None = None) -> bool:
    reader = Reader(resolve=looked_up, transport=dialler)
    try:
        await (rules or Robots()).check(reader, safefetch.asked(url))
    except robots.Forbidden:
        return False
    return True


@pytest.mark.parametrize(
    ("status", "said", "is_open"),
    [
        (200, b"", True),
        (404, b"User-agent: *\nDisallow: /", True),
        (403, b"", True),
        (500, b"", False),
        (503, b"User-agent: *\nAllow: /", False),
        (429, b"", False),
        (200, b"User-agent: *\nDisallow: /", False),
        (200, b"User-agent: *\nDisallow: /private", True),
        (200, b"User-agent: *\nDisallow: /a*z$", False),
        (200, b"User-agent: *\nDisallow: /a\nAllow: /abc", True),
        (200, b"\xef\xbb\xbfuser-agent: KEEPSAKE\ndisallow: /\n\nUser-agent: *\nAllow: /", False),
        (200, b"User-agent: Keepsake\nUser-agent: Other\nAllow: /\n\nUser-agent: *\nDisallow: /", True),
        (200, b"User-agent: Other\nDisallow: /", True),
        (200, b"User-agent: OtherBot\nUser-agent: *\nDisallow: /", False),
        (200, b"\xff\xfe\x00<html>not at all", True),
    ],
)
async def test_what_a_site_asks_of_robots_is_honoured(status: int, said: bytes, is_open: bool) -> None:
    assert await may(site(status, said), "https://a.example/abcz") is is_open


async def test_rules_are_asked_for_once_and_a_huge_file_is_read_in_part() -> None:
    rules = Robots()
    large = b"User-agent: *\nDisallow: /secret\n" + b"# padding\n" * 60_000 + b"Disallow: /late\n"
    dialler = site(200, large)

    assert len(large) > robots.LARGEST
    assert [await may(dialler, f"https://a.example{path}", rules) for path in ("/secret", "/late", "/")] == [
        False,
        True,
        True,
    ]
    assert len(dialler.called) == 1


async def test_many_names_times_many_rules_are_not_multiplied() -> None:
    said = b"".join(b"User-agent: bot%d\n" % n for n in range(12_000)) + b"Disallow: /a\n" * 18_000
    dialler = site(200, said + b"User-agent: *\nDisallow: /b\n")
    rules = Robots()

    assert await may(dialler, "https://a.example/a", rules)
    assert not await may(dialler, "https://a.example/b", rules)
    [(_, kept)] = rules._known.values()
    assert not isinstance(kept, bool)
    assert len(kept._user_agents) <= 2


# --- what a page says ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "claimed", "told"),
    [
        ("grün".encode(), "", "grün"),
        ("grün".encode("latin-1"), "", "grün"),
        ("grün".encode("latin-1"), "iso-8859-1", "grün"),
        ("\ufeffgrün".encode(), "shift_jis", "grün"),
        ("grün".encode("utf-16"), "", "grün"),
        ("<meta charset=windows-1251>привет".encode("cp1251"), "", "<meta charset=windows-1251>привет"),
        ("漢字".encode("shift_jis"), "shift_jis", "漢字"),
        ("grün".encode(), "no-such-thing", "grün"),
        ("grün".encode(), "utf-7", "grün"),
        ("grün".encode(), "unicode_escape", "grün"),
        ("grün".encode(), "zlib_codec", "grün"),
        (b"\xff\xfe\xff", "utf-8", "�"),
        ("grün".encode("latin-1"), "utf-8", "gr�n"),
        (b"<meta charset=utf-16>hi", "", "<meta charset=utf-16>hi"),
        (b"", "", ""),
        (b"hi", "utf-16", "楨"),
    ],
)
def test_a_wrong_charset_costs_letters_and_nothing_else(body: bytes, claimed: str, told: str) -> None:
    assert charset.decoded(body, claimed) == told


def pdf(pages: int, content: bytes, filters: bytes = b"", title: str = "A title") -> bytes:
    """A PDF whose pages all show the same content."""
    kids = b" ".join(b"%d 0 R" % (5 + n) for n in range(pages))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, kids),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), filters, content),
        *[b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 3 0 R>>>>>>"] * pages,
        b"<</Title(%s)>>" % title.encode(),
    ]
    made, places = b"%PDF-1.4\n", []
    for n, one in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj%s endobj\n" % (n, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"<</Size %d/Root 1 0 R/Info %d 0 R>>" % (len(objects) + 1, len(objects))
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    return made + head + table + b"trailer" + trailer + b"\nstartxref\n%d\n%%%%EOF" % len(made)


async def test_a_pdf_is_read_page_by_page() -> None:
    read = await extract.text(Document("pdf", pdf(3, b"BT /F 12 Tf (Hello there) Tj ET")))

    assert (read.title, read.text, read.cut) == ("A title", "Hello there\n\nHello there\n\nHello there", False)


def nested(content: bytes, times: int) -> bytes:
    for _ in range(times):
        content = zlib.compress(content, 9)
    return content


@pytest.mark.parametrize(
    "body",
    [
        pdf(1, nested(b"\0" * 100_000_000, 2), b"/Filter[/FlateDecode/FlateDecode]"),
        pdf(5_000, b"BT /F 12 Tf " + b"(x) Tj 1 0 0 1 5 5 Tm " * 2_000 + b"ET"),
        b"%PDF-1.7\n" + b"1 0 obj<<" * 5_000,
        b"%PDF-1.7\n" + b"[" * 50_000,
        b"%PDF-",
    ],
    ids=["nested", "pages", "broken", "deep", "empty"],
)
async def test_a_pdf_that_is_meant_to_harm_is_read_in_part_or_refused(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extract, "WORK_S", 1)

    try:
        told = (await extract.text(Document("pdf", body, longest=50_000))).cut
    except Unavailable as error:
        told = "PDF" in str(error) or "limits" in str(error)

    assert told
    assert not extract._running


async def test_a_page_that_keeps_its_reader_busy_is_given_up_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = Document("html", b"<div>" * 200_000)
    monkeypatch.setattr(extract, "WORK_S", 1)
    with pytest.raises(Unavailable, match="within the limits"):
        await extract.text(deep)
    monkeypatch.setattr(extract, "SECONDS", 0.3)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="given up"):
        await extract.text(deep)

    assert time.monotonic() - began < 30
    assert not extract._running


async def test_too_many_readings_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "MOST_AT_ONCE", 1)
    one = asyncio.create_task(extract.text(Document("text", b"one")))
    while not extract._running:
        await asyncio.sleep(0.001)

    with pytest.raises(Unavailable, match="at once"):
        await extract.text(Document("text", b"two"))

    assert (await one).text == "one"
