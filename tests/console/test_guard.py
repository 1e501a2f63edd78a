"""Every page and form of the console, whoever adds it: closed to strangers, framed by nobody, sent by us alone."""

import re
from pathlib import Path

import httpx
from starlette.routing import Route

from keepsake.core.principal import local_owner
from keepsake.surfaces.console import site
from tests.auth.conftest import as_, served
from tests.auth.flowing import Person
from tests.auth.flowing import browser as program
from tests.console.looking import add_person

#: What nobody need be signed in for.
OPEN = ("/console/signin", "/console/signout", "/console/static/", "/console/join/", "/console/theme")
EVIL = "https://evil.example"


def paths(routes: list[Route], method: str) -> list[str]:
    """Where a method is taken, with something in place of what is left open."""
    found = [route.path for route in routes if route.methods and method in route.methods]
    filled = [re.sub(r"\{(\w+)(:\w+)?\}", lambda m: "default" if m[1] == "bank" else "1", path) for path in found]
    return [path for path in filled if not path.startswith(OPEN)]


def is_guarded(answer: httpx.Response) -> bool:
    """Whether a page holds to the policy."""
    policy = answer.headers["content-security-policy"]
    wanted = ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'")
    is_strict = all(part in policy for part in wanted) and "unsafe" not in policy
    others = answer.headers["x-frame-options"] == "DENY" and answer.headers["x-content-type-options"] == "nosniff"
    return is_strict and others and answer.headers["cache-control"] == "no-store"


async def test_every_page_is_guarded_and_every_form_must_be_ours(tmp_path: Path) -> None:
    async with served(tmp_path) as server, program(server) as stranger, program(server) as http:
        await add_person(server, "ada", "owner")
        await as_(server.app, local_owner(), "bank.create", name="default")
        ada = Person(server, http)
        await ada.sign_in()
        routes = [route for route in site.routes(server.app) if isinstance(route, Route)]
        pages, forms = paths(routes, "GET"), paths(routes, "POST")
        assert len(pages) >= 6 and len(forms) >= 4

        for path in pages:
            away, shown = await stranger.get(path), await http.get(path)
            assert away.status_code == 303 and away.headers["location"].startswith("/console/signin?next="), path
            assert shown.status_code in (200, 303, 400, 403, 404), (path, shown.text)
            if shown.status_code == 200 and shown.headers["content-type"].startswith("text/html"):
                assert is_guarded(shown), path
                assert not re.search(r"<style|<script>|style=|\son\w+=", shown.text), path
        for path in forms:
            assert (await stranger.post(path, headers={"Origin": ada.base})).status_code == 303, path
            assert (await ada.post(path, {"csrf": "x"})).status_code == 403, path
            assert (await ada.post(path, {"x": "1"})).status_code == 403, path
            for origin in (EVIL, "null", "http://127.0.0.1:1"):
                assert (await ada.post(path, {"x": "1"}, Origin=origin)).status_code == 403, path
        assert (await ada.post("/console/account/password", {"old": "x" * 5_000_000})).status_code in (400, 403, 413)
