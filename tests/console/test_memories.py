"""Memories on pages: searched, opened, corrected, pinned, tagged, settled and forgotten, by those who may."""

import re
from pathlib import Path

import httpx
from playwright.async_api import Browser, expect

from keepsake import dispatch, worker
from keepsake.core.principal import Principal, local_owner
from tests.auth.conftest import Json, Served, served
from tests.auth.flowing import PASSWORD
from tests.console.looking import add_person, check_page, looking

XSS = '<img src=x onerror=alert(1)><script>alert(2)</script>"><svg onload=alert(3)>'
DOCUMENT = (
    "# Tokens\nWe settled on short access tokens in November.\n"
    "Ada Lovelace decided that refresh tokens rotate on every use.\nKeys are kept in the vault."
)
BANK = "/console/b/default"


async def _do(server: Served, operation: str, **arguments: object) -> Json:
    told = await dispatch.call(server.app.ctx(local_owner(), "default"), operation, dict(arguments))
    result: Json = told.model_dump(mode="json")
    return result


async def _read(server: Served) -> None:
    """Let the background read what waits."""
    while await worker.step(server.app):
        pass


async def _seeded(server: Served) -> None:
    await _do(server, "memory.retain", content=DOCUMENT, document="docs/tokens.md", tags=["auth"])
    await _do(server, "memory.retain", content="Alice prefers tea.")
    await _read(server)
    await _do(server, "memory.retain", content="Alice prefers coffee.")
    await _do(server, "memory.retain", content=f"Bob wrote {XSS} into the guest book.", tags=[XSS[:30]])
    await _do(
        server, "decision.record", title="Access tokens live 15 minutes", rationale="A stolen one was used for days"
    )
    await _read(server)
    agent = Principal(org=1, name="key:cursor", scopes=frozenset({"memory:read"}))
    await dispatch.call(server.app.ctx(agent, "default"), "memory.recall", {"query": "Do refresh tokens rotate?"})


async def test_someone_searches_opens_and_puts_a_memory_right(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        assert await me.go("/console/b/default/memories") == 404
        await _seeded(server)
        await me.go(f"{BANK}/memories")
        await me.sees("Newest first", "Bob wrote <img src=x")
        await check_page(me, "memories-newest")

        # As it is typed, with the same URL to come back to.
        await me.as_seen(1440, "light")
        await me.page.get_by_label("Search memories").press_sequentially("who decided that refresh tokens rotate")
        await me.sees("The same search your agents use.")
        await expect(me.page).to_have_url(re.compile(r"q=who\+decided|q=who%20decided"))
        # A filter that came with the answer leads on by itself, and the cross leads back.
        await me.page.locator("select[name=kind]").select_option("decision")
        await me.page.wait_for_url("**kind=decision**")
        await me.sees("1 memory for “who decided")
        await me.page.get_by_role("link", name="Kind: decision").click()
        await me.sees("The same search your agents use.", "Why it was found", "Meaning")
        await check_page(me, "memories")
        await me.as_seen(390, "light")
        await me.page.get_by_role("link", name="refresh tokens rotate on every use").first.click()
        await me.sees("docs/tokens.md", "cursor once", "Ada Lovelace")
        await expect(me.page.locator("mark").filter(visible=True).first).to_have_text(
            "Ada Lovelace decided that refresh tokens rotate on every use."
        )
        assert await me.page.get_by_label("Search memories").is_visible() is False
        for name, heading in (("docs/tokens.md", "docs/tokens.md"), ("Ada Lovelace", "Graph")):
            await me.page.get_by_role("link", name=name, exact=True).click()
            await expect(me.page.get_by_role("heading", level=1)).to_have_text(re.compile(heading))
            await me.page.go_back()
        await check_page(me, "memory")

        await me.as_seen(1440, "light")
        await me.press("Pin")
        await me.sees("pinned")
        await me.page.get_by_role("link", name="Retag").click()
        await me.page.get_by_label("Tags, between commas").fill("auth, tokens")
        await check_page(me, "memory-tags")
        await me.press("Save the tags")
        await me.sees("tokens")
        await me.page.get_by_role("link", name="Correct", exact=True).click()
        await check_page(me, "memory-correct")
        field = me.page.get_by_label("What is true now")
        await field.fill("Refresh tokens live 30 days and rotate on every use.")
        # Meanwhile someone else was quicker.
        id = me.page.url.split("/")[-2]
        await _do(server, "memory.correct", id=id, content="Refresh tokens live 10 days and rotate on every use.")
        await me.press("Correct it")
        await me.sees("Someone changed this first", "Your correction is not saved yet.")
        assert [await one.inner_text() for one in await me.page.locator("mark").all()] == ["10", "30"]
        await check_page(me, "memory-stale")
        await me.page.get_by_label("Replace with mine").check()
        await me.press("Save what stands")
        await me.sees("Refresh tokens live 30 days", "History", "Open as of then", "pinned")


async def test_someone_settles_a_conflict_and_sees_what_a_client_gets(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        await _seeded(server)
        await me.go(f"{BANK}/memories")
        await me.page.get_by_role("link", name="Conflicts 1").click()
        await me.sees("Alice prefers …")
        await check_page(me, "conflicts")
        await me.page.get_by_label("This is true now").first.check()
        await me.press("Keep the chosen one, supersede the other")
        await me.sees("No two memories are at odds")

        await me.go(f"{BANK}/preview")
        await me.page.get_by_label("First prompt").fill("How long do access tokens live in minutes?")
        await me.press("Show what it gets")
        await me.sees("Decided:", "stands before the rest, whatever the prompt", "With this prompt")
        await check_page(me, "preview")
        await me.go(f"{BANK}/memories?q=zanzibar+umbrella&kind=milestone")
        await me.sees("Nothing found for “zanzibar umbrella”. Searched")
        await me.page.get_by_role("link", name="Remember").click()
        await check_page(me, "memory-new")
        await me.page.get_by_label("What is true").fill("The lighthouse was built in 1911.")
        await me.press("Remember it")
        await me.sees("The lighthouse was built in 1911.", "without a source")


async def test_several_are_chosen_and_forgotten_and_who_may_not_asks_for_it(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        await _seeded(server)
        await me.go(f"{BANK}/memories?select=1")
        await check_page(me, "memories-select")
        await me.as_seen(1440, "light")
        await me.page.get_by_label("Alice prefers tea.").check()
        await me.page.get_by_label("Tags, between commas").fill("drinks")
        await me.press("Add tags")
        await me.go(f"{BANK}/memories?tag=drinks&select=1")
        await me.page.get_by_label("Alice prefers tea.").check()
        await me.press("Forget the chosen…")
        await me.sees("Nothing else rests on it.")
        await check_page(me, "memory-forget")
        await me.press("Forget 1 memory for good")
        await me.sees("1 memory was forgotten", "Digest of the ids")
        await check_page(me, "memory-forgotten")

        await add_person(server, "ada", "approver")
        await add_person(server, "bob", "editor")
        coffee = (await _do(server, "memory.recall", query="Alice prefers coffee"))["hits"][0]["memory"]["id"]
        await me.enter(f"{BANK}/memories/forget?id={coffee}", "bob")
        await me.sees("An approver decides on it")
        await me.page.get_by_label("Why it should go").fill("She changed her mind.")
        await me.press("Ask to forget 1 memory")
        await me.sees("An approver has to agree", "She changed her mind.", "Alice prefers coffee.")
        await check_page(me, "memory-asked")
        asked = me.page.url
        async with looking(browser, server) as ada:
            await ada.enter(f"/console/approve/{asked.rsplit('/', 1)[1]}", "ada")
            await ada.page.get_by_label("I understand").check()
            await ada.press("Forget it for good")
        await me.page.goto(asked)
        await me.press("Forget it for good")
        await me.sees("1 memory was forgotten")


async def _form(http: httpx.AsyncClient, page: str, action: str, **fields: str) -> httpx.Response:
    """Send a form as the page that was opened would."""
    shown = await http.get(page)
    token = re.search(r'name="csrf" value="([0-9a-f]+)"', shown.text)
    origin = str(http.base_url).rstrip("/")
    values = {"csrf": token[1] if token else "", **fields}
    return await http.post(action, data=values, headers={"Origin": origin})


async def test_forms_that_are_not_ours_or_too_large_or_wrong_change_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, KEEPSAKE_BODY_LIMIT="200000") as server:
        kept = await _do(server, "memory.retain", content=f"The vault is blue. {XSS}")
        place, http = f"{BANK}/memories/{kept['id']}", server.http
        correct = f"{place}/correct"
        cases = {
            "no token": (await http.post(correct, data={"content": "x"}), 403),
            "another's page": (
                await http.post(correct, data={"content": "x"}, headers={"Origin": "http://evil.test"}),
                403,
            ),
            "no form": (await http.post(correct, json={"content": "x"}), 400),
            "nothing typed": (await _form(http, correct, correct, content="   "), 400),
            "too much": (await _form(http, correct, correct, content="x" * 20_001), 400),
            "far too much": (await _form(http, correct, correct, content="x" * 300_000), 413),
            "a wrong tag": (await _form(http, f"{place}/tags", f"{place}/tags", tags="x" * 300), 400),
            "an odd wish": (await _form(http, correct, f"{BANK}/memories/chosen", id=kept["id"], do="eat"), 400),
            "more than shown": (
                await _form(http, correct, f"{BANK}/memories/forget", id=kept["id"], count="7"),
                303,
            ),
            "an odd date": (await http.get(f"{BANK}/memories?as_of=yesterday"), 400),
            "an odd page": (await http.get(f"{BANK}/memories?before=x"), 400),
            "no memory": (await http.get(f"{BANK}/memories/12345"), 404),
            "nothing to forget": (await http.get(f"{BANK}/memories/forget"), 400),
            "no receipt": (await http.get(f"{BANK}/memories/forgotten/1"), 404),
            "no conflict": (await _form(http, correct, f"{BANK}/conflicts/1", keep="both"), 404),
            "an odd side": (await _form(http, correct, f"{BANK}/conflicts/1", keep="left"), 400),
        }

        assert {what: answer.status_code for what, (answer, _) in cases.items()} == {
            what: status for what, (_, status) in cases.items()
        }
        held = await _do(server, "memory.browse", superseded=True)
        assert [(one["text"], one["tags"]) for one in held["memories"]] == [(f"The vault is blue. {XSS}", [])]
        away = await _form(http, correct, f"{BANK}/memories/chosen", id=kept["id"], do="pin", back="//evil.test/x")
        assert (away.status_code, away.headers["location"]) == (303, "/console")


async def test_stored_text_is_shown_as_text(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        kept = await _do(server, "memory.retain", content=f"{XSS} in a document.", document=XSS, tags=[XSS], title=XSS)
        pages = [f"{BANK}/memories", f"{BANK}/memories?q=document", f"{BANK}/memories/{kept['id']}", f"{BANK}/preview"]
        pages += [f"{BANK}/memories/{kept['id']}/{part}" for part in ("correct", "tags")]
        pages += [f"{BANK}/memories/forget?id={kept['id']}", f"{BANK}/memories?q={XSS}&tag={XSS}&select=1"]
        for page in pages:
            answer = await server.http.get(page)
            assert answer.status_code == 200, page
            assert not re.search(r"<img src=x|<script>alert|<svg onload", answer.text), page
            assert "style=" not in answer.text, page

        part = await server.http.get(f"{BANK}/memories?q=document", headers={"HX-Request": "true"})
        assert "<html" not in part.text
        assert 'aria-label="Results"' in part.text


async def test_forms_pin_tag_settle_and_keep_what_others_did_meanwhile(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        http, chosen = server.http, f"{BANK}/memories/chosen"
        for text in ("Alice prefers tea.", "Alice prefers coffee."):
            await _do(server, "memory.retain", content=text, tags=["drinks"])
            await _read(server)
        [pair] = (await _do(server, "memory.conflicts"))["conflicts"]
        ids = {"older": pair["older"]["id"], "newer": pair["newer"]["id"]}
        start = f"{BANK}/memories/{ids['older']}/tags"

        none = await _form(http, start, chosen, do="pin", back=f"{BANK}/memories?tag=drinks")
        await _form(http, start, chosen, do="pin", id=ids["older"])
        await _form(http, start, f"{BANK}/memories/{ids['newer']}/pin", pinned="yes")
        # Someone tags it after the form was shown with only one tag.
        await _do(server, "memory.tag", ids=[ids["older"]], add=["meanwhile"])
        await _form(http, start, start, had="drinks", tags="hot")
        marked = [await _do(server, "memory.get", id=id) for id in ids.values()]
        empty = await _form(http, start, f"{BANK}/conflicts/{pair['id']}", do="write", content=" ", **ids)
        wrote = await _form(http, start, f"{BANK}/conflicts/{pair['id']}", do="write", content="Alice fasts.", **ids)
        again = await _form(http, start, f"{BANK}/conflicts/{pair['id']}", keep="older")
        held = (await _do(server, "memory.browse"))["memories"]

        assert none.headers["location"] == f"{BANK}/memories?tag=drinks&select=none"
        assert "Choose at least one memory first." in (await http.get(none.headers["location"])).text
        assert [(one["pinned"], one["tags"]) for one in marked] == [(True, ["meanwhile", "hot"]), (True, ["drinks"])]
        assert [answer.status_code for answer in (empty, wrote, again)] == [400, 303, 409]
        assert [(one["text"], one["pinned"]) for one in held] == [("Alice fasts.", True)]


async def test_a_reader_is_offered_and_allowed_no_change(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        kept = await _do(server, "memory.retain", content="The vault is blue.")
        await add_person(server, "rita", "reader")
        http, place = server.http, f"{BANK}/memories/{kept['id']}"
        entered = await _form(http, "/console/signin", "/console/signin", user="rita", password=PASSWORD)
        assert entered.status_code == 303

        shown = await http.get(place)
        sure = await http.get(f"{BANK}/memories/forget?id={kept['id']}")
        tried = [
            await _form(http, place, f"{place}/{part}", **fields)
            for part, fields in (("pin", {"pinned": "yes"}), ("correct", {"content": "Red."}), ("tags", {"tags": "x"}))
        ]
        tried.append(await _form(http, place, f"{BANK}/memories/forget", id=kept["id"], count="1"))

        assert "You may read here." in shown.text
        assert not re.search(r">Correct<|Forget…|Select several|Remember<", shown.text)
        assert "Only an owner may forget" in sure.text
        assert [answer.status_code for answer in tried] == [403] * 4
        assert (await _do(server, "memory.get", id=kept["id"]))["pinned"] is False
