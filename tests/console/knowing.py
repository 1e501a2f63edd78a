"""A bank that knows something: sessions, decisions, milestones, models, documents and artifacts."""

from keepsake.context import App
from keepsake.core.clock import DAY, HOUR, MINUTE
from keepsake.core.principal import LOCAL_ORG, local_owner
from keepsake.store import mental_models, sessions
from keepsake.store.engine import Tx
from keepsake.store.mental_models import Sentence, Version
from tests.auth.conftest import Json, as_


async def do(app: App, operation: str, **arguments: object) -> Json:
    """Run an operation as the local owner, in the usual bank."""
    return (await as_(app, local_owner(), operation, **arguments)).model_dump()


async def bank_id(app: App) -> int:
    row = await app.store.read(LOCAL_ORG, lambda tx: tx.one("SELECT bank FROM banks ORDER BY bank LIMIT 1"))
    assert row is not None
    return int(row["bank"])


async def session(app: App, key: str, ago: int, told: list[str], client: str = "claude-code") -> int:
    """A session that began so long ago, with what was observed in it and a memory of its own."""
    bank, start = await bank_id(app), app.now() - ago
    made = [(await do(app, "memory.retain", content=text, whole=True))["id"] for text in told]
    id = app.store.new_id()

    async def body(tx: Tx) -> int:
        end = start + 38 * MINUTE
        await sessions.insert(
            tx, LOCAL_ORG, bank, sessions.Session(id, key, client, f"/home/ada/{key}", "main", start, end, end)
        )
        for n, memory in enumerate(made):
            await tx.run(
                "UPDATE memories SET source = :source, kind = :kind, event_at = :at WHERE id = :id",
                source=id,
                kind="fact" if n == len(made) - 1 else "observation",
                at=start + (n + 1) * MINUTE,
                id=int(memory),
            )
        return id

    return await app.store.write(LOCAL_ORG, body)


async def model(app: App, name: str, texts: list[str], memories: list[str]) -> str:
    """A mental model with so many versions of one sentence each."""
    asked = await do(app, "model.create", name=name, source_query=f"What about {name}?")
    bank, id = await bank_id(app), str(asked["id"])

    async def body(tx: Tx) -> None:
        for n, text in enumerate(texts):
            told = (Sentence(text, tuple(int(one) for one in memories)),)
            at = app.now() - (len(texts) - n) * HOUR
            await mental_models.add_version(tx, Version(LOCAL_ORG, bank, id, 0, told, "rules", 10**9, at))

    await app.store.write(LOCAL_ORG, body)
    return id


async def decided(app: App, title: str, **more: object) -> str:
    """A decision; tells its id."""
    return str((await do(app, "decision.record", title=title, **more))["decision"]["id"])


async def knowing(app: App) -> dict[str, str]:
    """Everything of this group once, with the ids to find it by."""
    old = await decided(app, "Access tokens live 60 minutes", rationale="It was the default of the library.")
    new = await decided(
        app,
        "Access tokens live 15 minutes, refresh tokens rotate",
        decision="Refresh tokens are used once. On reuse the Auth Service revokes the whole family.",
        rationale="A stolen token was replayed for 41 minutes in March.",
        alternatives=[
            {"option": "Keep 60 minutes and alert on reuse", "why_not": "Alerts came after the damage."},
            {"option": "Offline JWT", "why_not": "Nothing can be revoked."},
        ],
        supersedes=old,
        tags=["auth"],
    )
    limits = await decided(
        app, "The rate limiter of the Auth Service fails open for reads", rationale="Reads must survive Redis."
    )
    jwt = await decided(app, "No offline JWT in the Auth Service", kind="rejected", rationale="Cannot be revoked.")
    queue = await decided(app, "Move webhooks to a queue", status="proposed")
    await decided(app, "Upgrade Redis before the beta", status="blocked", blocker=True, rationale="No window yet.")
    beta = await do(
        app,
        "milestone.record",
        title="Public beta of atlas-api",
        description="Eleven decisions since the last one.",
        related_decisions=[new, limits],
    )
    plan = await do(
        app,
        "artifact.create",
        title="Rollout plan",
        identifier="rollout-plan",
        content="# Rollout\n\nFirst 5 % of the traffic.\nThen everyone.\n",
        note="First draft",
    )
    await do(
        app,
        "artifact.update",
        id="rollout-plan",
        content="# Rollout\n\nFirst 5 % of the traffic.\nThen 50 %.\nThen everyone, on a Tuesday.\n",
        note="Slower",
    )
    await do(app, "graph.relate", origin="rollout-plan", target=new, type="implements")
    await do(app, "graph.relate", origin=jwt, target=new, type="weighed_against")
    await do(app, "graph.relate", origin=queue, target=limits, type="depends_on")
    await do(app, "memory.retain", content="The Auth Service is owned by Jonas Weber.", document="notes/team.md")
    await do(app, "directive.create", name="Units", content="Answer in metric units.", priority=10)
    told = ["Edited src/auth/tokens.py", "Ran pytest tests/auth (success)", "Redis keeps the families of tokens."]
    rotate = await session(app, "rotate-tokens", 2 * HOUR, told)
    await session(app, "dark-mode", 2 * DAY, ["Edited web/theme.css", "The theme is a cookie."], "cursor")
    directory = await model(
        app, "Who owns what", ["Jonas Weber owns auth.", "Jonas Weber owns the Auth Service."], [new, limits]
    )
    return {
        "old": old,
        "new": new,
        "jwt": jwt,
        "queue": queue,
        "beta": str(beta["milestone"]["id"]),
        "plan": str(plan["artifact_id"]),
        "session": str(rotate),
        "model": directory,
    }
