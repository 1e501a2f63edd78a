"""Signing in and consenting with a browser: guesses are counted, forms are ours, and nobody is led away."""

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from keepsake.core.clock import MINUTE
from keepsake.core.errors import BadInput, Forbidden, NotFound
from keepsake.core.principal import LOCAL_ORG, Principal, local_owner
from keepsake.ops import signing_in
from keepsake.ops.signing_in import Denied, Entered
from tests.auth.conftest import as_, at, opened
from tests.auth.flowing import AUTHORIZE, PASSWORD, hidden, living, place, query
from tests.conftest import Database


async def test_guesses_are_counted_by_name_in_the_database(database: Database) -> None:
    folder, environment = place(database)
    async with opened(folder, **environment) as app, opened(folder, **environment) as other:
        await as_(app, local_owner(), "user.add", name="ada", role="reader")
        await as_(app, local_owner(), "user.password", name="ada", password=PASSWORD)
        now = app.now()

        async def guess(name: str, password: str = "wrong", where: int = 0, after: int = 0) -> Entered | Denied:
            return await signing_in.sign_in(at((app, other)[where % 2], now + after), name, password, f"10.0.0.{where}")

        # The same words whether there is such a person or not, from whichever process and address.
        for name in ("ada", "nobody"):
            left = [await guess(name, where=n) for n in range(6)]
            assert left == [Denied(4), Denied(3), Denied(2), Denied(1), Denied(0), Denied(0)]
        assert await guess("ada", PASSWORD) == Denied(0)
        assert isinstance(await guess("ada", PASSWORD, after=11 * MINUTE), Entered)
        # Who knows the password has not guessed.
        assert await guess("ada", after=12 * MINUTE) == Denied(4)


async def test_guesses_are_counted_by_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing_in, "PER_ADDRESS", 3)
    async with opened(tmp_path) as app:
        await as_(app, local_owner(), "user.add", name="ada")
        await as_(app, local_owner(), "user.password", name="ada", password=PASSWORD)
        for name in "abc":
            assert await signing_in.sign_in(app, name, "x", "10.0.0.1") == Denied(4)

        assert await signing_in.sign_in(app, "ada", PASSWORD, "10.0.0.1") == Denied(0)
        assert isinstance(await signing_in.sign_in(app, "ada", PASSWORD, "10.0.0.2"), Entered)


async def test_a_strange_name_is_nobody(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        await as_(app, local_owner(), "user.add", name="ada")
        await as_(app, local_owner(), "user.password", name="ada", password=PASSWORD)
        for name in ("", "x" * 500, "a\x00b", "ada\n", "ADA", "ada ", "' OR 1=1 --", "🫖", "\ud800"):
            assert isinstance(await signing_in.sign_in(app, name, PASSWORD, "10.0.0.1"), Denied), name


async def test_a_password_is_set_by_who_manages_the_org(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        me = local_owner()
        await as_(app, me, "user.add", name="ada-of-the-hill")
        for password in ("short", "x" * 1_025, "ada-of-the-hill", "ADA-of-the-hill"):
            with pytest.raises(BadInput):
                await as_(app, me, "user.password", name="ada-of-the-hill", password=password)
        with pytest.raises(NotFound):
            await as_(app, me, "user.password", name="eve", password=PASSWORD)
        at_a_bank = Principal(LOCAL_ORG, "key:x", frozenset({"admin"}), banks=frozenset({"api"}))
        with pytest.raises(Forbidden):
            await as_(app, at_a_bank, "user.password", name="ada-of-the-hill", password=PASSWORD)


async def test_a_session_ends_with_the_password_the_person_or_a_click(database: Database) -> None:
    folder, environment = place(database)
    async with living(folder, **environment) as ada:
        app, me = ada.server.app, local_owner()

        async def signed() -> bool:
            return "You are signed in as ada" in (await ada.http.get("/console/signin")).text

        assert not await signed()
        await ada.sign_in()
        first = ada.http.cookies["keepsake"]
        assert await signed()
        await as_(app, me, "user.password", name="ada", password="another long password")
        assert not await signed()
        await ada.sign_in(password="another long password")
        # A new id with every sign-in, so that one that was planted is worth nothing.
        assert ada.http.cookies["keepsake"] != first
        await as_(app, me, "user.add", name="eve")
        await as_(app, me, "user.disable", name="ada")
        assert not await signed()
        await as_(app, me, "user.disable", name="ada", enable=True)
        assert await signed()
        page = await ada.http.get("/console/signin")
        held = ada.http.cookies["keepsake"]
        left = await ada.post("/console/signout", {"csrf": hidden(page.text, "csrf")})
        assert left.status_code == 403
        out = re.search(r'signout">.*?name="csrf" value="(\w+)"', page.text, re.DOTALL)
        assert out
        assert (await ada.post("/console/signout", {"csrf": out[1]})).status_code == 303
        ada.http.cookies.set("keepsake", held)
        assert not await signed()


async def test_staying_signed_in_is_a_choice(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        brief = (await ada.sign_in()).headers["set-cookie"]
        lasting = (await ada.sign_in(stay="yes")).headers["set-cookie"]

        assert "Max-Age" not in brief
        assert "Max-Age=2592000" in lasting
        assert all(word in brief for word in ("HttpOnly", "SameSite=lax", "Path=/"))
        assert "Secure" not in brief


LEADING_AWAY = [
    *("https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "/", ""),
    *("/console/../x", "/console/%0d%0aSet-Cookie:x", "/console//evil.example", "http:evil.example", "/consolex"),
    *(
        "/api/auth/mcp/authorize",
        "/api/auth/mcp/token?x",
        "/api/auth/mcp/authorize?x\r\nX: y",
        "/v1/operations",
        "x" * 9_000,
    ),
]


async def test_signing_in_leads_nowhere_else(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        for next in LEADING_AWAY:
            form = await ada.http.get("/console/signin")
            given = {"csrf": hidden(form.text, "csrf"), "user": "ada", "password": PASSWORD, "next": next}
            answer = await ada.post("/console/signin", given)
            shown = await ada.http.get("/console/signin", params={"next": next})

            assert answer.status_code in (303, 400), next
            assert f"{answer.headers.get('location', '/console')}/".startswith("/console/"), next
            assert shown.status_code == 400 or f"{hidden(shown.text, 'next')}/".startswith("/console/"), next


async def test_a_form_of_another_site_is_refused(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        client = (await ada.register())["client_id"]
        form = await ada.http.get("/console/signin")
        given = {"csrf": hidden(form.text, "csrf"), "user": "ada", "password": PASSWORD}
        elsewhere = ["https://evil.example", "null", "http://127.0.0.1:1", ada.base.replace("127.0.0.1", "localhost")]
        for origin in elsewhere:
            assert (await ada.post("/console/signin", given, Origin=origin)).status_code == 403, origin
        assert (await ada.http.post("/console/signin", data=given)).status_code == 403
        assert (await ada.post("/console/signin", {**given, "csrf": "x"})).status_code == 403
        assert (await ada.post("/console/signin", {**given, "csrf": ""})).status_code == 403
        assert "keepsake" not in ada.http.cookies
        assert (await ada.post("/console/signin", given)).status_code == 303

        asked = ada.asking(client)
        page = await ada.http.get(AUTHORIZE, params=asked)
        allowed = {"csrf": hidden(page.text, "csrf"), "allow": "yes", "scope": "memory:read", "bank": "*"}
        path = f"{AUTHORIZE}?{urlencode(asked)}"
        for origin in elsewhere:
            assert (await ada.post(path, allowed, Origin=origin)).status_code == 403, origin
        assert (await ada.http.post(path, data=allowed)).status_code == 403
        for csrf in ("", "x", given["csrf"]):
            assert (await ada.post(path, {**allowed, "csrf": csrf})).status_code == 403
        assert (await ada.http.post(path, data=allowed, headers={"Sec-Fetch-Site": "same-origin"})).status_code == 303
        assert len((await as_(ada.server.app, local_owner(), "grant.list")).model_dump()["grants"]) == 1


async def test_a_page_runs_nothing_and_is_in_no_frame(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        name = '<script>alert(1)</script>"&'
        client = (await ada.register(client_name=name))["client_id"]
        await ada.sign_in()
        consent = await ada.http.get(AUTHORIZE, params=ada.asking(client, state='"><img src=x>'))
        refused = await ada.http.get(AUTHORIZE, params=ada.asking("unknown"))
        form = await ada.http.get("/console/signin", params={"next": '/console/"><script>'})

        for page in (consent, refused, form):
            policy = page.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert page.headers["cache-control"] == "no-store"
            assert page.headers["x-content-type-options"] == "nosniff"
            assert not re.search(r"<script|<style|<img|style=|\son\w+=|javascript:", page.text)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in consent.text
        # What a person must know before they allow it.
        for told in (
            "http://127.0.0.1:33418",
            "on this computer",
            "cannot vouch for it",
            "memory:read",
            "Signed in as ada",
        ):
            assert told in consent.text, told


async def test_a_page_finds_its_style(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        form = await ada.http.get("/console/signin")
        found = re.findall(r'href="(/console/static/\w+/[\w.]+)"', form.text)
        answers = [await ada.http.get(place) for place in found]
        assert [answer.headers["content-type"] for answer in answers] == ["image/svg+xml", "text/css; charset=utf-8"]
        assert all("immutable" in answer.headers["cache-control"] for answer in answers)
        for wrong in ("/console/static/x/console.css", "/console/static/x/../pages.py", "/console/static/x/pages.py"):
            assert (await ada.http.get(wrong)).status_code == 404


async def test_cancelling_tells_the_client_so(tmp_path: Path) -> None:
    async with living(tmp_path) as ada:
        client = (await ada.register())["client_id"]
        await ada.sign_in()
        asked = ada.asking(client)
        page = await ada.http.get(AUTHORIZE, params=asked)
        csrf = hidden(page.text, "csrf")
        path = f"{AUTHORIZE}?{urlencode(asked)}"
        answer = await ada.post(path, {"csrf": csrf, "allow": "no"})

        told = query(answer)
        assert (told["error"], told["state"], told["iss"]) == ("access_denied", "xyz", ada.base)
        # Without a thing to do, or a bank to do it in, there is nothing to allow.
        for chosen in ({}, {"scope": "memory:read"}, {"bank": "*"}, {"scope": "admin", "bank": "*"}):
            answer = await ada.post(path, {"csrf": csrf, "allow": "yes", **chosen})
            assert (answer.status_code, "location" in answer.headers) == (400, False)
            assert "Tick at least one" in answer.text


async def test_who_may_do_nothing_can_allow_nothing(tmp_path: Path) -> None:
    async with living(tmp_path, "approver") as ada:
        client = (await ada.register())["client_id"]
        await ada.sign_in()
        page = await ada.http.get(AUTHORIZE, params=ada.asking(client))

        assert "You may do nothing of what Tea timer asks for" in page.text
        assert 'value="yes"' not in page.text
