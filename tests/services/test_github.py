"""GitHub over real HTTP: what it is sent, its pages and limits, what goes wrong, and where no token may go."""

import time
from collections.abc import AsyncIterator, Iterator

import pytest

from keepsake import settings
from keepsake.core import clock
from keepsake.core.clock import HOUR, SECOND
from keepsake.core.errors import BadInput, KeepsakeError, Misconfigured
from keepsake.services import github
from keepsake.services.github import Connection, Failed, Hub, Limited, Missing, Refused
from keepsake.services.github_items import Comment, Issue
from tests.github_server import Closes, Forge, Line, Links, serving
from tests.llm_server import Fails, Raw, Redirects

pytestmark = pytest.mark.anyio
TOKEN = "ghp_" + "a1" * 18
NAME = "octo/keeper"
ISSUES = github.listing(NAME, "issues", state="all", sort="updated", direction="asc")


@pytest.fixture
def forge() -> Iterator[Forge]:
    with serving() as forge:
        yield forge


@pytest.fixture
def elsewhere() -> Iterator[Forge]:
    """Another host, which must never hear of us."""
    with serving() as forge:
        yield forge


@pytest.fixture
def waits() -> list[int]:
    """Until when it was told to wait."""
    return []


@pytest.fixture
async def hub(forge: Forge, waits: list[int]) -> AsyncIterator[Connection]:
    async def waiting(until: int) -> None:
        waits.append(until)

    forge.token = TOKEN
    async with Hub(forge.url, TOKEN, pause_s=0.01, timeout=5).connected(waiting) as connection:
        yield connection


def filled(forge: Forge, count: int) -> None:
    for number in range(1, count + 1):
        forge.issue(number, f"Issue {number}", "It breaks.")


async def test_a_request_says_who_asks_and_for_which_version(hub: Connection, forge: Forge) -> None:
    await hub.page(Issue, ISSUES)

    sent = forge.asked[0].headers
    assert sent["authorization"] == f"Bearer {TOKEN}"
    assert (sent["accept"], sent["x-github-api-version"]) == ("application/vnd.github+json", "2022-11-28")
    assert sent["user-agent"].startswith("keepsake/")
    assert TOKEN not in repr(hub.hub)


async def test_without_a_token_none_is_sent(forge: Forge) -> None:
    async with Hub(forge.url, "").connected() as connection:
        await connection.page(Issue, ISSUES)

    assert "authorization" not in forge.asked[0].headers


async def test_pages_are_followed_to_the_last_one(hub: Connection, forge: Forge) -> None:
    filled(forge, 7)
    forge.most_per_page = 3

    found = await hub.all(Issue, ISSUES, 100)

    assert [issue.number for issue in found] == [1, 2, 3, 4, 5, 6, 7]
    assert [asked.query.get("page") for asked in forge.asked] == [None, "2", "3"]


async def test_a_list_is_read_no_further_than_asked_for(hub: Connection, forge: Forge) -> None:
    filled(forge, 7)
    forge.most_per_page = 3

    found = await hub.all(Issue, ISSUES, 4)

    assert (len(found), len(forge.asked)) == (4, 2)


async def test_what_has_not_changed_is_not_read_again(hub: Connection, forge: Forge) -> None:
    filled(forge, 2)
    first = await hub.page(Issue, ISSUES)
    assert first is not None

    assert await hub.page(Issue, ISSUES, first.etag) is None
    forge.touch(1)
    assert await hub.page(Issue, ISSUES, first.etag) is not None
    assert [asked.status for asked in forge.asked] == [200, 304, 200]


@pytest.mark.parametrize("line", [Fails(500), Fails(502), Fails(503), Closes(), Raw("[{"), Raw('{"message": "?"}')])
async def test_what_breaks_is_asked_for_again(hub: Connection, forge: Forge, line: Line) -> None:
    filled(forge, 5)
    forge.most_per_page = 3
    forge.will(line)
    first = await hub.page(Issue, ISSUES)
    assert first is not None
    forge.will(line, line)

    second = await hub.page(Issue, first.next)

    assert second is not None
    assert [issue.number for issue in (*first.items, *second.items)] == [1, 2, 3, 4, 5]
    assert len(forge.asked) == 2 + 3


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (Fails(503), "answered with status 503, 4 times"),
        (Closes(), "closed in the middle"),
        (Raw("<html>proxy</html>"), "something that is not what it should be"),
        (Raw('[{"number": "x"}]'), "something that is not what it should be"),
    ],
)
async def test_what_stays_broken_is_told_in_words(hub: Connection, forge: Forge, line: Line, told: str) -> None:
    forge.will(*[line] * 4)

    with pytest.raises(Failed, match=told):
        await hub.page(Issue, ISSUES)


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    async with Hub("http://127.0.0.1:9", TOKEN, pause_s=0.01).connected() as connection:
        with pytest.raises(Failed, match="cannot be reached"):
            await connection.page(Issue, ISSUES)


@pytest.mark.parametrize(
    ("line", "kind", "told"),
    [
        (Fails(401, message="Bad credentials"), Refused, "does not take the token"),
        (Fails(403), Refused, "Give it the right to read"),
        (Fails(403, {"X-Accepted-GitHub-Permissions": "issues=read; pull_requests=read"}), Refused, "issues=read"),
        (Fails(403, {"X-GitHub-SSO": "required; url=https://github.com/orgs/x"}), Refused, "single sign-on"),
        (Fails(404), Missing, r"Check the repository's name, which it may see"),
        (Fails(410), Missing, "410"),
        (Fails(422), Refused, "422"),
    ],
)
async def test_a_refusal_says_what_to_do_and_is_not_repeated(
    hub: Connection, forge: Forge, line: Line, kind: type[KeepsakeError], told: str
) -> None:
    forge.will(line)

    with pytest.raises(kind, match=told) as refused:
        await hub.page(Issue, ISSUES)

    assert len(forge.asked) == 1
    assert TOKEN not in str(refused.value)


async def test_a_private_repository_without_a_token_says_that_one_is_needed(forge: Forge) -> None:
    forge.token = TOKEN

    async with Hub(forge.url, "").connected() as connection:
        with pytest.raises(Missing, match="KEEPSAKE_GITHUB_TOKEN if it is private"):
            await connection.page(Issue, ISSUES)


@pytest.mark.parametrize("status", [403, 429])
async def test_a_short_limit_is_waited_for_and_told(
    hub: Connection, forge: Forge, waits: list[int], status: int
) -> None:
    filled(forge, 1)
    forge.will(Fails(status, {"Retry-After": "1"}, "You have exceeded a secondary rate limit."))
    before = clock.now()

    page = await hub.page(Issue, ISSUES)

    assert page is not None and len(page.items) == 1
    assert len(waits) == 2 and before + SECOND <= waits[0] <= clock.now() + SECOND and waits[1] == 0


@pytest.mark.parametrize("status", [429, 403])
async def test_a_long_limit_is_left_for_later_and_nothing_is_asked_meanwhile(
    hub: Connection, forge: Forge, waits: list[int], status: int
) -> None:
    primary = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()) + 3_600)}
    forge.will(Fails(status, {"Retry-After": "3600"} if status == 429 else primary))

    for _ in range(2):
        with pytest.raises(Limited, match="takes no more requests before") as limited:
            await hub.page(Issue, ISSUES)

    assert abs(limited.value.until - clock.now() - HOUR) < 600 * SECOND
    assert (len(forge.asked), waits) == (1, [])


async def test_a_limit_beyond_reason_is_cut(hub: Connection, forge: Forge) -> None:
    forge.will(Fails(429, {"Retry-After": "99999999"}))

    with pytest.raises(Limited) as limited:
        await hub.page(Issue, ISSUES)

    assert limited.value.until <= clock.now() + github.LONGEST_LIMIT


async def test_a_secondary_limit_without_a_header_is_a_minute(hub: Connection, forge: Forge) -> None:
    hub.hub.longest_wait_s = 10
    forge.will(Fails(403, message="You have exceeded a secondary rate limit. Please wait."))

    with pytest.raises(Limited) as limited:
        await hub.page(Issue, ISSUES)

    assert 50 * SECOND < limited.value.until - clock.now() <= 60 * SECOND


async def test_when_nothing_is_left_the_next_request_waits_instead_of_being_refused(forge: Forge) -> None:
    filled(forge, 5)
    forge.most_per_page, forge.remaining, forge.reset = 3, 1, int(time.time()) + 3_000

    async with Hub(forge.url, "").connected() as connection:
        first = await connection.page(Issue, ISSUES)
        assert first is not None
        with pytest.raises(Limited, match=r"raises its limit from 60 to 5,000"):
            await connection.page(Issue, first.next)

    assert [asked.status for asked in forge.asked] == [200]


async def test_a_page_elsewhere_is_not_asked_for(hub: Connection, forge: Forge, elsewhere: Forge) -> None:
    filled(forge, 2)
    forge.will(Links(f"{elsewhere.url}/repos/{NAME}/issues?page=2"))

    with pytest.raises(Failed, match="another address"):
        await hub.page(Issue, ISSUES)

    assert elsewhere.asked == []


async def test_a_redirect_elsewhere_is_not_followed(hub: Connection, forge: Forge, elsewhere: Forge) -> None:
    forge.will(Redirects(f"{elsewhere.url}/repos/{NAME}/issues"))

    with pytest.raises(Failed, match="another address"):
        await hub.page(Issue, ISSUES)

    assert elsewhere.asked == []


@pytest.mark.parametrize(
    "link",
    [
        "",
        "//evil.example/repos/x",
        "http://evil.example/api/v3/x",
        "http://ghe.example/api/v3/x",
        "https://ghe.example:444/api/v3/x",
        "https://ghe.example/api/v4/x",
        "https://ghe.example.evil/api/v3/x",
        "https://ghe.example/api/v3/../../x",
        "https://user@ghe.example/api/v3/x",
    ],
)
def test_only_links_below_the_address_are_ours(link: str) -> None:
    with pytest.raises(Failed):
        Hub("https://ghe.example/api/v3", TOKEN).within(link)


def test_a_link_becomes_a_path_that_can_be_kept() -> None:
    hub = Hub("https://ghe.example/api/v3", TOKEN)

    assert hub.within("https://GHE.example/api/v3/repositories/7/issues?page=2") == "/repositories/7/issues?page=2"


async def test_a_renamed_repository_is_followed_at_its_own_host(hub: Connection, forge: Forge) -> None:
    filled(forge, 2)
    forge.will(Redirects(f"{forge.url}/repositories/1296269/issues?state=all"))

    page = await hub.page(Issue, ISSUES)

    assert page is not None and len(page.items) == 2


async def test_redirects_without_end_end(hub: Connection, forge: Forge) -> None:
    forge.will(*[Redirects(f"{forge.url}/repositories/1296269/issues")] * 10)

    with pytest.raises(Failed, match="from one address to the next"):
        await hub.page(Issue, ISSUES)


async def test_a_file_beyond_all_measure_is_not_read_whole(hub: Connection, forge: Forge) -> None:
    forge.files["big.bin"] = b"x" * 100_000

    content = await hub.contents(NAME, "big.bin", "main", limit=1_000)

    assert (len(content.body), content.is_cut) == (1_000, True)


async def test_a_file_and_the_tree_are_read_at_a_revision(hub: Connection, forge: Forge) -> None:
    forge.files |= {"src/a b.py": b"print('\xc3\xa4')\n", "README.md": b"# Keeper\n"}

    content = await hub.contents(NAME, "src/a b.py", "v1.0#1")
    tree = await hub.tree(NAME, "feature/x")

    assert (content.body, content.is_cut) == (b"print('\xc3\xa4')\n", False)
    assert forge.asked[0].query == {"ref": "v1.0#1"}
    assert forge.asked[0].headers["accept"] == "application/vnd.github.raw+json"
    assert [(entry.path, entry.type, entry.size) for entry in tree.tree] == [
        ("README.md", "blob", 9),
        ("src/a b.py", "blob", 12),
    ]


@pytest.mark.parametrize("path", ["src", "nothing.py"])
async def test_a_folder_and_what_is_not_there_are_no_files(hub: Connection, forge: Forge, path: str) -> None:
    forge.files["src/a.py"] = b"1"

    with pytest.raises(Missing):
        await hub.contents(NAME, path, "main")


@pytest.mark.parametrize("path", ["", "../x", "a/../../b", "./a", ".."])
async def test_a_path_that_leads_out_is_refused_before_anything_is_asked(
    hub: Connection, forge: Forge, path: str
) -> None:
    with pytest.raises(BadInput):
        await hub.contents(NAME, path, "main")

    assert forge.asked == []


@pytest.mark.parametrize("name", ["", "octo", "octo/../x", "octo/a/b", "octo/a?b", "../..", "o/.."])
def test_a_repository_has_an_owner_and_a_name(name: str) -> None:
    with pytest.raises(BadInput):
        github.repository(name)


async def test_what_may_be_null_may_be_null(hub: Connection, forge: Forge) -> None:
    forge.issue(1, "Empty", None)
    forge.issues[1] |= {"user": None, "labels": [{"name": None}]}
    forge.comment(1, None, None)

    (issue,) = await hub.all(Issue, ISSUES, 10)
    (comment,) = await hub.all(Comment, github.listing(NAME, "issues/1/comments"), 10)

    assert (issue.author, issue.body, comment.author, comment.body) == ("ghost", "", "ghost", "")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.github.com", "github.com"),
        ("https://ghe.example/api/v3", "ghe.example"),
        ("https://api.tenant.ghe.com", "tenant.ghe.com"),
        ("http://127.0.0.1:80", "127.0.0.1:80"),
    ],
)
def test_the_api_of_a_website_is_known(url: str, host: str) -> None:
    assert github.website(url) == host


@pytest.mark.parametrize(
    ("token", "remote", "may"),
    [
        (TOKEN, "/home/ada/keeper", True),
        ("", "/home/ada/keeper", False),
        ("", "https://github.com/octo/keeper.git", True),
        ("", "https://GitHub.com/octo/keeper", True),
        ("", "https://gitlab.com/octo/keeper", False),
        ("", "https://github.com.evil.example/octo/keeper", False),
    ],
)
def test_nobody_is_asked_whom_nobody_named(token: str, remote: str, may: bool) -> None:
    given = settings.load({"KEEPSAKE_GITHUB_TOKEN": token})

    assert github.may_ask(given, NAME, remote) is may


def test_the_address_of_an_enterprise_is_a_setting_and_a_wrong_one_is_refused() -> None:
    made = github.configured(settings.load({"KEEPSAKE_GITHUB_URL": "https://ghe.example/api/v3/"}))

    assert made.base_url == "https://ghe.example/api/v3"
    with pytest.raises(Misconfigured, match="KEEPSAKE_GITHUB_URL"):
        settings.load({"KEEPSAKE_GITHUB_URL": "ftp://ghe.example"})


def test_no_other_programs_token_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)

    assert settings.load().github_token == ""
