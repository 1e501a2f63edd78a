"""CPU of every page of the console with a bank of many memories, as someone who is signed in sees it.

`python -m bench.pages [postgres]`; the bar: 50 ms a page at 100,000 memories.
"""

import asyncio
import re
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import httpx

from bench import context, speed
from keepsake import context as keepsake_context
from keepsake import dispatch, settings
from keepsake.context import App
from keepsake.core.clock import DAY, MINUTE
from keepsake.core.principal import LOCAL_ORG, local_owner
from keepsake.store import banks, mental_models
from keepsake.store.engine import Tx, Value

BANK, PERSON, PASSWORD = "bench-pages", "bench", "as-long-as-it-should-be"
COUNT, EACH, PARTS = 100_000, 8, 5
SESSIONS, DOCUMENTS, ENTITIES, SPENT = 500, 500, 2_000, 20_000

#: Every group of pages; `{name}` is something that the bank holds.
PAGES: tuple[tuple[str, str], ...] = (
    ("home", ""),
    ("one bank", "/b/{bank}"),
    ("memories, newest", "/b/{bank}/memories"),
    ("memories, a page further back", "/b/{bank}/memories?before={middle}"),
    ("memories of a common kind", "/b/{bank}/memories?kind=observation"),
    ("memories of a rare kind", "/b/{bank}/memories?kind=decision"),
    ("memories of a kind there is none of", "/b/{bank}/memories?kind=milestone"),
    ("memories of a common type", "/b/{bank}/memories?type=experience"),
    ("memories of a rare type", "/b/{bank}/memories?type=opinion"),
    ("memories with a common tag", "/b/{bank}/memories?tag=atlas"),
    ("memories with a rare tag", "/b/{bank}/memories?tag=rare"),
    ("memories with a common tag, of a rare kind", "/b/{bank}/memories?tag=atlas&kind=decision"),
    ("memories of a common source", "/b/{bank}/memories?source=session"),
    ("memories of a rare source", "/b/{bank}/memories?source=web"),
    ("memories of rare trust", "/b/{bank}/memories?trust=outside"),
    ("memories of a kind, a source and a trust", "/b/{bank}/memories?kind=observation&source=document&trust=outside"),
    ("memories of the last week", "/b/{bank}/memories?time=week"),
    ("memories of the last day", "/b/{bank}/memories?time=day"),
    ("memories with what was superseded", "/b/{bank}/memories?past=1"),
    ("memories as of an earlier day", "/b/{bank}/memories?as_of=2026-01-01"),
    ("one memory", "/b/{bank}/memories/{memory}"),
    ("search", "/b/{bank}/memories?q=What+did+the+team+decide+for+billing"),
    ("search, as one types", "/b/{bank}/memories?q=Marta+pref"),
    ("search of a rare kind", "/b/{bank}/memories?q=Who+moved+billing&kind=decision"),
    ("conflicts", "/b/{bank}/conflicts"),
    ("injection preview", "/b/{bank}/preview?q=billing+service"),
    ("timeline", "/b/{bank}/timeline"),
    ("timeline of decisions", "/b/{bank}/timeline?show=decisions"),
    ("timeline of a client", "/b/{bank}/timeline?client=cursor"),
    ("one session", "/b/{bank}/timeline/{session}"),
    ("graph", "/b/{bank}/graph"),
    ("graph around one", "/b/{bank}/graph?around={decision}&depth=2"),
    ("graph, searched", "/b/{bank}/graph?q=redis"),
    ("decisions", "/b/{bank}/decisions"),
    ("one decision", "/b/{bank}/decisions/{decision}"),
    ("models", "/b/{bank}/models"),
    ("one model", "/b/{bank}/models/{model}"),
    ("documents", "/b/{bank}/documents"),
    ("directives", "/b/{bank}/directives"),
    ("artifacts", "/b/{bank}/artifacts"),
    ("approvals", "/approvals"),
    ("operations", "/b/{bank}/operations"),
    ("usage", "/usage"),
    ("usage of a year", "/usage?weeks=53"),
    ("health", "/b/{bank}/health"),
    ("checks", "/b/{bank}/health/checks"),
    ("this server", "/b/{bank}/health/server"),
    ("audit log", "/audit"),
    ("audit log of one operation", "/audit?operation=memory.forget"),
    ("projects", "/projects"),
    ("ask", "/b/{bank}/ask"),
    ("keys", "/settings/keys"),
)


async def fill(loaded: settings.Settings, count: int) -> None:
    """Write so many memories, and with them what the other pages show."""
    await context.fill(loaded, count, BANK)
    async with keepsake_context.open(loaded) as app:
        await app.store.write(LOCAL_ORG, lambda tx: _varied(tx, app))
        await app.store.write(LOCAL_ORG, lambda tx: _governed(tx, app, count))
        await _recorded(app)
        await app.store.engine.settle()


async def _varied(tx: Tx, app: App) -> None:
    """Sources, tags, entities, trust and what was superseded, spread over the memories that are there."""
    bank = await banks.named(tx, LOCAL_ORG, BANK)
    assert bank is not None
    rows = await tx.all("SELECT id FROM memories WHERE org = 1 AND bank = :bank ORDER BY id", bank=bank.id)
    ids = [int(row["id"]) for row in rows]
    own: dict[str, Value] = {"org": LOCAL_ORG, "bank": bank.id}
    sessions = [app.store.new_id() for _ in range(SESSIONS)]
    documents = [app.store.new_id() for _ in range(DOCUMENTS)]
    await tx.many(
        "INSERT INTO sessions (org, bank, id, key, client, cwd, branch, started_at, last_at, ended_at, summary)"
        " VALUES (:org, :bank, :id, :key, :client, '/home/ada/atlas', 'main', :at, :end, :end, NULL)",
        [
            own | {"id": id, "key": f"s{n}", "client": "cursor" if n % 5 else "claude-code"} | _half_hour(app, n)
            for n, id in enumerate(sessions)
        ],
    )
    await tx.many(
        "INSERT INTO sources (org, bank, id, kind, key, uri, revision, hash, text, meta, created_at, replaced_by)"
        " VALUES (:org, :bank, :id, :kind, :key, '', '', :key, 'text', '{}', :now, NULL)",
        [
            own | {"id": id, "kind": "document" if n else "url", "key": f"notes/{n}.md", "now": app.now()}
            for n, id in enumerate(documents)
        ],
    )
    await _told_by(tx, own, ids[: len(ids) // 2], documents)
    await _told_by(tx, own, ids[len(ids) // 2 : -len(ids) // 10], sessions)
    change = "UPDATE memories SET {} WHERE org = :org AND bank = :bank AND id = ANY_INT(:ids)"
    await tx.run(change.format("trust = 'outside'"), **own, ids=ids[5::2_500])
    await tx.run(change.format("fact_type = 'opinion'"), **own, ids=ids[9::2_500])
    await tx.many(
        "UPDATE memories SET superseded_at = learned_at, superseded_by = :by"
        " WHERE org = :org AND bank = :bank AND id = :id",
        [own | {"id": ids[n], "by": ids[n + 1]} for n in range(11, len(ids) - 200, 20)],
    )
    tagged = [("atlas", id) for n, id in enumerate(ids) if n % 4] + [("rare", id) for id in ids[3:30_000:3_000]]
    await tx.many(
        "INSERT INTO memory_tags (org, bank, tag, memory) VALUES (:org, :bank, :tag, :id)",
        [own | {"tag": tag, "id": id} for tag, id in tagged],
    )
    entities = [app.store.new_id() for _ in range(ENTITIES)]
    await tx.many(
        "INSERT INTO entities (org, bank, id, name, folded, kind) VALUES (:org, :bank, :id, :name, :name, 'thing')",
        [own | {"id": id, "name": f"redis {n}"} for n, id in enumerate(entities)],
    )
    await tx.many(
        "INSERT INTO memory_entities (org, bank, entity, memory, role) VALUES (:org, :bank, :entity, :id, 'named')",
        [own | {"entity": entities[n * n % ENTITIES], "id": id} for n, id in enumerate(ids)],
    )
    await tx.many(
        "INSERT INTO conflicts (org, bank, id, older, newer, why, state, settled_by, created_at)"
        " VALUES (:org, :bank, :id, :older, :newer, 'Both cannot hold.', 'open', '', :now)",
        [own | {"id": app.store.new_id(), "older": ids[n], "newer": ids[-1 - n], "now": app.now()} for n in range(50)],
    )
    told = tuple(mental_models.Sentence(f"Sentence {n}.", tuple(ids[n * 40 : n * 40 + 4])) for n in range(30))
    await mental_models.insert(
        tx,
        mental_models.Model(
            LOCAL_ORG, bank.id, "directory", "Directory", "Who owns what?", (), 2048, True, 0, app.now(), app.now()
        ),
    )
    for _ in range(10):
        made = mental_models.Version(LOCAL_ORG, bank.id, "directory", 0, told, "rules", 10**9, app.now())
        await mental_models.add_version(tx, made)


def _half_hour(app: App, n: int) -> dict[str, Value]:
    start = app.now() - n * 300 * DAY // SESSIONS
    return {"at": start, "end": start + 30 * MINUTE}


async def _told_by(tx: Tx, own: dict[str, Value], ids: list[int], sources: list[int]) -> None:
    share = -(-len(ids) // len(sources))
    await tx.many(
        "UPDATE memories SET source = :source WHERE org = :org AND bank = :bank AND id >= :first AND id <= :last",
        [
            own | {"source": source, "first": held[0], "last": held[-1]}
            for n, source in enumerate(sources)
            if (held := ids[n * share : (n + 1) * share])
        ],
    )


async def _governed(tx: Tx, app: App, count: int) -> None:
    """A change in the audit log for every memory, and what models spent over a year."""
    bank = await banks.named(tx, LOCAL_ORG, BANK)
    assert bank is not None
    now = app.now()
    await tx.many(
        "INSERT INTO audit (org, bank, n, at, principal, operation, targets, digest, hash)"
        " VALUES (1, :bank, :n, :at, 'local', :operation, '[1]', :hash, :hash)",
        [
            {
                "bank": bank.id,
                "n": n,
                "at": now - (count - n) * 365 * DAY // count,
                "operation": "memory.retain" if n % 5_000 else "memory.forget",
                "hash": f"{n:064x}",
            }
            for n in range(1, count + 1)
        ],
    )
    await tx.run(
        "INSERT INTO audit_heads (org, bank, n, hash) VALUES (1, :bank, :n, :hash) ON CONFLICT (org, bank)"
        " DO UPDATE SET n = excluded.n, hash = excluded.hash",
        bank=bank.id,
        n=count,
        hash=f"{count:064x}",
    )
    await tx.many(
        "INSERT INTO usage (org, bank, id, at, principal, operation, model, tokens_in, tokens_out, source)"
        " VALUES (1, :bank, :id, :at, :principal, :operation, 'small', 900, 90, 'mcp')",
        [
            {
                "bank": bank.id,
                "id": app.store.new_id(),
                "at": now - n * 365 * DAY // SPENT,
                "principal": f"key:{n % 7}",
                "operation": ("memory.ask", "extraction", "reflection")[n % 3],
            }
            for n in range(SPENT)
        ],
    )


async def _recorded(app: App) -> None:
    """What is few, through the operations themselves; and who looks at it all."""
    ctx = app.ctx(local_owner(), BANK)
    for n in range(20):
        await dispatch.call(ctx, "decision.record", {"title": f"Decision {n} of billing", "rationale": "It is so."})
    for n in range(5):
        given = {"title": f"Plan {n}", "identifier": f"plan-{n}", "content": "# Plan\n\nFirst, then second.\n"}
        await dispatch.call(ctx, "artifact.create", given)
    await dispatch.call(ctx, "directive.create", {"name": "Units", "content": "Answer in metric units."})
    await dispatch.call(ctx, "user.add", {"name": PERSON, "role": "owner"})
    await dispatch.call(ctx, "user.password", {"name": PERSON, "password": PASSWORD})


def entered(url: str) -> httpx.Client:
    """A browser in which someone has signed in."""
    browser = httpx.Client(base_url=url, timeout=60, headers={"Origin": url})
    form = browser.get("/console/signin").text
    csrf = re.findall(r'name="csrf" value="([^"]*)"', form)[-1]
    sent = {"csrf": csrf, "next": "/console", "user": PERSON, "password": PASSWORD}
    answer = browser.post("/console/signin", data=sent)
    assert answer.status_code == 303, answer.status_code
    return browser


def known(browser: httpx.Client) -> dict[str, str]:
    """What stands in the addresses of pages."""

    def first(path: str, pattern: str) -> str:
        found = re.findall(pattern, browser.get(f"/console/b/{BANK}{path}").text)
        assert found, path
        return str(found[0])

    memory = first("/memories", r"/memories/(\d+)")
    return {
        "bank": BANK,
        "memory": memory,
        "middle": first(f"/memories?kind=decision&before={memory}", r"/memories/(\d+)"),
        "session": first("/timeline?show=sessions", r"/timeline/(\d+)"),
        "decision": first("/decisions", r"/decisions/(\d+)"),
        "model": "directory",
    }


def taken(browser: httpx.Client, spent: Callable[[], float]) -> dict[str, float]:
    """Milliseconds of CPU a page, the median of several looks at all of them."""
    names = known(browser)
    paths = {name: "/console" + path.format(**names) for name, path in PAGES}
    found: dict[str, list[float]] = {name: [] for name in paths}
    for part in range(PARTS + 1):
        for name, path in paths.items():
            before = spent()
            for _ in range(EACH if part else 2):
                answer = browser.get(path)
                assert answer.status_code == 200, f"{path}: {answer.status_code}"
            if part:
                found[name].append(1000 * (spent() - before) / EACH)
    return {name: statistics.median(figures) for name, figures in found.items()}


def measured(count: int, url: str = "") -> dict[str, float]:
    """Milliseconds of CPU a page."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(fill(settings.load({}, data_dir=Path(folder), database_url=url or None), count))
        with speed.server(Path(folder), url) as (address, pid):
            return taken(entered(address), speed.spent(pid, url))


def main() -> None:
    """Every page as a line of a table."""
    from bench.__main__ import postgres

    for store, address in (("SQLite", ""), ("PostgreSQL", "postgres")):
        if address and "postgres" not in sys.argv:
            continue
        if address:
            with postgres() as url:
                told = measured(COUNT, url)
        else:
            told = measured(COUNT)
        for name, figure in told.items():
            print(f"  {store}: {name:<50}{figure:>8.1f} ms CPU   {'< 50' if figure < 50 else 'OVER 50'}")


if __name__ == "__main__":
    main()
