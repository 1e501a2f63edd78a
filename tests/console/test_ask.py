"""Ask in the console: answers as they come, their sources, conversations, and what a stored text cannot do."""

import re
import threading
from pathlib import Path

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from keepsake.core.principal import local_owner
from keepsake.surfaces.console import rendering
from keepsake.surfaces.console.rendering import Sources
from tests.auth.conftest import Served, as_, served
from tests.auth.flowing import Person, hidden
from tests.auth.flowing import browser as program
from tests.console.looking import SHOTS, add_person, check_page, looking
from tests.llm_server import MODEL, Hangs, Streams, Waits, serving

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)> [go](javascript:alert(3)) [1](https://evil.example)"


async def told(server: Served) -> None:
    """Two banks that know something."""
    for name in ("atlas-api", "atlas-web"):
        await as_(server.app, local_owner(), "bank.create", name=name)
    decided = {
        "title": "Refresh tokens rotate on every use",
        "decision": "Replaying an old refresh token revokes the whole family.",
        "rationale": "A stolen refresh token must not live on.",
    }
    await as_(server.app, local_owner(), "decision.record", bank="atlas-api", **decided)
    said = {
        "atlas-api": ["A revoked token family answers 401, never 403.", f"Tokens of staging {EVIL} live an hour."],
        "atlas-web": ["The dashboard asks for a new token when the old one is 55 minutes old."],
    }
    for bank, texts in said.items():
        for text in texts:
            await as_(server.app, local_owner(), "memory.retain", bank=bank, content=text)


async def test_an_answer_comes_with_sources_that_open_and_is_kept(browser: Browser, tmp_path: Path) -> None:
    async with served(tmp_path) as server, looking(browser, server) as me:
        await told(server)
        await me.go("/console/b/atlas-api/ask")
        await me.sees("Answered by rules, which costs nothing", "Nothing yet.")
        await me.page.get_by_label("Question").fill("What happens when an old refresh token comes back?")
        await me.page.get_by_role("button", name="Ask", exact=True).click()
        await me.sees("Put together by rules from", "revokes the whole family")
        assert "?chat=" in me.page.url
        await expect(me.page.locator("main script, main img, [href^=javascript]")).to_have_count(0)
        await check_page(me, "ask")

        await me.as_seen(1440, "light")
        await me.page.get_by_label("Question").fill("And which status does it answer with?")
        await me.page.get_by_role("button", name="Ask", exact=True).click()
        await me.sees("Answered before")
        await expect(me.page.locator("#turns article")).to_have_count(2)
        await me.page.reload()
        await expect(me.page.locator("#turns article")).to_have_count(2)
        await me.page.locator("#turns .cite").first.click()
        assert "#s4-1" in me.page.url
        await me.page.locator("#sources a.said").first.click()
        await me.page.wait_for_url("**/console/b/atlas-api/memories/*")

        await me.page.go_back()
        await me.page.get_by_text("Delete this conversation").click()
        await me.press("Delete 4 messages for good")
        await me.sees("Nothing yet.")


async def test_without_scripts_a_form_is_enough_and_several_banks_are_not_kept(tmp_path: Path) -> None:
    async with served(tmp_path) as server, program(server) as http:
        await told(server)
        await add_person(server, "bob", "reader", "atlas-api")
        bob = Person(server, http)
        await bob.sign_in("bob")
        place = "/console/b/atlas-api/ask"
        csrf = hidden((await http.get(place)).text, "csrf")

        one = await bob.post(place, {"csrf": csrf, "q": "Which status\r\nanswers?"})
        assert one.status_code == 303 and "chat=" in one.headers["location"]
        kept = await http.get(one.headers["location"])
        assert "never 403" in kept.text and "Delete this conversation" not in kept.text
        none = await bob.post(place, {"csrf": csrf, "q": "   "})
        assert none.status_code == 400 and "Write a question first" in none.text
        strange = await bob.post(place, {"csrf": csrf, "q": "Anything?", "with": "atlas-web"})
        assert strange.status_code == 403 and "55 minutes" not in strange.text
        streamed = await bob.post(f"{place}/live", {"csrf": csrf, "q": "Anything?", "with": "atlas-web"})
        assert "may not do this" in streamed.text or "does not reach" in streamed.text
        assert "55 minutes" not in streamed.text

        await add_person(server, "ada", "owner")
        async with program(server) as other:
            ada = Person(server, other)
            await ada.sign_in()
            csrf = hidden((await other.get(place)).text, "csrf")
            both = await ada.post(place, {"csrf": csrf, "q": "How old may a token be?", "with": "atlas-web"})
            assert both.status_code == 200 and "55 minutes" in both.text
            assert "atlas-web</span>" in both.text
            listed = await as_(server.app, local_owner(), "chat.list", bank="atlas-api")
            assert listed.model_dump()["total"] == 1


async def test_a_model_is_named_its_cost_told_and_what_it_says_acts_as_little(tmp_path: Path) -> None:
    with serving() as script:
        thinking = {"KEEPSAKE_LLM_BASE_URL": script.url, "KEEPSAKE_LLM_MODEL": MODEL}
        async with served(tmp_path, **thinking) as server:
            await told(server)
            place = "/console/b/atlas-api/ask"
            page = await server.http.get(place)
            csrf, ours = hidden(page.text, "csrf"), {"Origin": str(server.http.base_url).rstrip("/")}
            assert "tokens left this week" in page.text
            script.will(f"It is revoked [1]. <script>alert(1)</script> {EVIL}", Hangs())

            whole = await server.http.post(
                f"{place}/live", data={"csrf": csrf, "q": "What happens to an old token?"}, headers=ours
            )

            assert f"Written by {MODEL} from 1 source, " in whole.text and "tokens read" in whole.text
            assert (
                ">answering</span>" in whole.text and "event: asked\ndata: /console/b/atlas-api/ask?chat=" in whole.text
            )
            assert not re.search(r"<script|<img|href=.javascript|href=.https://evil", whole.text)
            async with server.http.stream(
                "POST", f"{place}/live", data={"csrf": csrf, "q": "And then, with tokens?"}, headers=ours
            ) as begun:
                async for line in begun.aiter_lines():
                    if ">answering</span>" in line:
                        break
            # Whoever leaves is not waited for: the server ends at once, though the model would say nothing for long.


async def test_an_answer_is_read_while_it_is_written_and_taken_back_where_it_is_wrong(
    browser: Browser, tmp_path: Path
) -> None:
    first, again, hostile, last = (threading.Event() for _ in range(4))
    with serving() as script:
        thinking = {"KEEPSAKE_LLM_BASE_URL": script.url, "KEEPSAKE_LLM_MODEL": MODEL}
        async with served(tmp_path, **thinking) as server, looking(browser, server) as me:
            await told(server)
            script.will(
                Streams(
                    (
                        "Replaying an old one ",
                        "revokes:\n\n- the family [1]\n- with 401 [2]\n",
                        Waits(first),
                        "- so [99]",
                    )
                ),
                Streams(
                    (Waits(again), f"{EVIL} is told [2]. And", Waits(hostile), " 401 [1]. So", Waits(last), " [2].")
                ),
            )
            await me.go("/console/b/atlas-api/ask")
            await me.page.get_by_label("Question").fill("Which status answers a revoked token family?")
            await me.page.get_by_role("button", name="Ask", exact=True).click()

            await me.sees("Replaying an old one revokes", "with 401", "writing")
            now = me.page.locator("#now")
            await expect(now.locator("[aria-busy=true] .answer li")).to_have_count(2)
            assert (await Axe().run(me.page)).response["violations"] == []
            if SHOTS:
                await me.shot("ask-stream")
            await now.locator(".cite").first.click()
            await expect(now.locator("li:target a.said")).to_have_attribute("href", re.compile("/memories/"))

            first.set()
            await me.sees("asking again", "It was taken back, and the model is asked again.")
            await expect(now).not_to_contain_text("Replaying")
            again.set()
            await me.sees("is told")
            await now.get_by_role("link", name="Stop").focus()
            hostile.set()
            await me.sees("And 401")
            await expect(now.get_by_role("link", name="Stop")).to_be_focused()
            await expect(me.page.locator("main script, main img, [href^=javascript], [href*=evil]")).to_have_count(0)
            last.set()
            await me.sees(f"Written by {MODEL} from 2 sources")
            await expect(now.locator("article")).to_have_count(0)
            await expect(me.page.locator("main script, main img, [href^=javascript], [href*=evil]")).to_have_count(0)
            assert "?chat=" in me.page.url and await now.locator("..").get_by_text("Replaying an old one").count() == 0


def test_markdown_becomes_a_little_html_and_nothing_of_it_acts() -> None:
    known = Sources({1: ("#s1", 'A "quoted" <b>'), 2: ("#s2", "Two")}, frozenset({"https://ok.example/a"}))
    text = (
        "## Head <b>\n\nOne **bold** and `co<de>` [1][2] [9].\n\n- first\n  goes on [1, 2]\n- second\n\n"
        "> said\n\n```\n<script>\n```\n\n[ok](https://ok.example/a) [no](https://evil.example) [x](javascript:y)"
        " \\[1\\] &lt;i> <img src=x onerror=z>"
    )

    made = str(rendering.markdown(text, known))

    assert made == (
        "<h3>Head &lt;b&gt;</h3><p>One <strong>bold</strong> and <code>co&lt;de&gt;</code> "
        '<a class="cite" href="#s1" aria-label="Source 1: A &#34;quoted&#34; &lt;b&gt;">1</a>'
        '<a class="cite" href="#s2" aria-label="Source 2: Two">2</a> [9].</p>'
        '<ul><li>first goes on <a class="cite" href="#s1" aria-label="Source 1: A &#34;quoted&#34; &lt;b&gt;">1</a>'
        '<a class="cite" href="#s2" aria-label="Source 2: Two">2</a></li><li>second</li></ul>'
        '<blockquote class="span">said</blockquote><pre tabindex="0"><code>&lt;script&gt;</code></pre>'
        '<p><a href="https://ok.example/a" rel="noreferrer">ok</a> no [x](javascript:y)'
        " [1] &lt;i&gt; &lt;img src=x onerror=z&gt;</p>"
    )
    assert "<script" not in str(rendering.markdown("<script>" * 20_000))
