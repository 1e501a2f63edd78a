"""Banks: create, list, look at, change, delete."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from keepsake.auth import policy
from keepsake.context import App, Changed, Ctx
from keepsake.core import clock
from keepsake.core.errors import NotFound
from keepsake.core.lazy import lazy
from keepsake.core.models import BankName, Given, InBank, Receipt, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.project import Project
from keepsake.core.text import Clean
from keepsake.store import banks, embeddings, memories, repos, sources
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    from keepsake.ops import forgetting
    from keepsake.services import mirror, repository
    from keepsake.store import projects
else:
    forgetting = lazy("keepsake.ops.forgetting")
    mirror = lazy("keepsake.services.mirror")
    repository = lazy("keepsake.services.repository")
    projects = lazy("keepsake.store.projects")

Title = Clean


class Repository(Result):
    """The repository that a bank learns from."""

    full_name: str | None = Field(None, description="`owner/name` where it is on GitHub.")
    synthesis: str = Field(description="How the project's profile stands: pending, running, completed or failed.")
    last_synced_at: str | None = Field(None, description="When it was last read to its end, ISO 8601.")


class Bank(Result):
    """A bank: a place for memories that belong together."""

    name: str = Field(description="Its name.")
    title: str = Field(description="A human-friendly name.")
    mission: str = Field(description="Who the agent is and what it is trying to accomplish.")
    disposition: dict[str, int] = Field(description="Skepticism, literalism and empathy, 1 to 5.")
    created_at: str | None = Field(None, description="When it was made; absent for a bank that has no writes yet.")
    repository: Repository | None = Field(None, description="The repository it learns from, where it has one.")
    uuid: str | None = Field(None, description="An id that stays when it is renamed.")
    workspace: str | None = Field(None, description="The same for addresses and headers, ws_….")


def shown(bank: banks.Bank, repo: repos.Repo | None = None) -> Bank:
    """A bank as everyone sees it."""
    return Bank(
        name=bank.name,
        title=bank.title or bank.name,
        mission=bank.mission,
        disposition=bank.disposition,
        created_at=clock.iso(bank.created_at),
        repository=_learnt_from(repo) if repo else None,
        uuid=bank.uuid,
        workspace=f"ws_{bank.ws_hex}",
    )


def _learnt_from(repo: repos.Repo) -> Repository:
    synced_at = clock.iso(repo.last_synced_at) if repo.last_synced_at is not None else None
    return Repository(full_name=repo.full_name or None, synthesis=repo.synthesis, last_synced_at=synced_at)


def wanted(ctx: Ctx, named: str | None) -> tuple[str, bool]:
    """Which bank is meant, and whether the request itself implies it."""
    # Whoever works in a project calls it by its folder, whatever its bank had to be called.
    if named is not None and (ctx.project is None or named != ctx.project.name):
        return named, False
    return ctx.bank or ctx.app.settings.default_bank, True


async def only(ctx: Ctx) -> str | None:
    """The one bank that a credential reaches, by whatever names; None where that is several, or every one."""
    names = sorted(ctx.principal.banks or ())
    if len(names) < 2:
        return names[0] if names else None

    async def body(tx: Tx) -> list[banks.Bank | None]:
        return [await banks.named(tx, ctx.org, name) for name in names]

    found = await ctx.read(body)
    known = {bank.id: bank.name for bank in found if bank is not None}
    return next(iter(known.values())) if len(known) == 1 and None not in found else None


async def here(app: App, org: int, folder: str = "") -> tuple[str, Project | None]:
    """The bank of a folder, else of this process's own, and its project; everyone's bank where there is none."""
    project = repository.here(folder) or repository.here()
    if project is None:
        return app.settings.default_bank, None
    return await app.store.read(org, lambda tx: projects.expected(tx, org, project)), project


def is_hidden(ctx: Ctx, name: str) -> bool:
    """Whether a bank is not there, rather than refused, for someone who works in a project and names another."""
    return ctx.project is not None and name != ctx.bank and not ctx.principal.sees(name)


async def found(tx: Tx, ctx: Ctx, named: str | None) -> banks.Bank | None:
    """The bank to read; None when it is implied and has no writes yet."""
    name, implied = wanted(ctx, named)
    policy.check_bank(ctx.principal, name)
    bank = await banks.named(tx, ctx.org, name)
    if bank is None and not implied:
        raise NotFound(f"No bank {name!r}.", "bank.list", "bank.create", "bank.status")
    return bank


async def several(tx: Tx, ctx: Ctx, names: Sequence[str]) -> dict[str, banks.Bank]:
    """The banks of these names, each once, by the name it was asked by; an unknown one stops it all.

    The one that the request implies is left out while it has no writes.
    """
    found: dict[int, tuple[str, banks.Bank]] = {}
    unknown: list[str] = []
    for named in dict.fromkeys(names):
        name, implied = wanted(ctx, named)
        if not (hidden := is_hidden(ctx, name)):
            policy.check_bank(ctx.principal, name)
        bank = None if hidden else await banks.named(tx, ctx.org, name)
        if bank is not None:
            found.setdefault(bank.id, (named, bank))
        elif not implied:
            unknown.append(named)
    if unknown:
        told = ", ".join(map(repr, unknown[:5]))
        raise NotFound(f"No project or bank {told}.", "bank.list", "bank.status")
    return dict(found.values())


async def ensured(tx: Tx, ctx: Ctx, named: str | None) -> banks.Bank:
    """The bank to write to; an implied one is made by its first write."""
    bank = await found(tx, ctx, named)
    name, implied = wanted(ctx, named)
    project = ctx.project if implied else None
    if bank is not None and project is None:
        return bank
    if bank is None:
        policy.check_making(ctx.principal, name)
    if project is not None:
        return await _claimed(tx, ctx, project)
    made = await banks.create(tx, ctx.store, ctx.org, name) or await banks.named(tx, ctx.org, name)
    if made is None:
        raise NotFound(f"The bank {name!r} was deleted a moment ago. Try again.")
    return made


async def check_there(ctx: Ctx, named: str | None) -> None:
    """Refuse a write whose bank is not there, where it would be made by whoever may make none."""
    name, implied = wanted(ctx, named)
    if implied and await ctx.read(lambda tx: banks.named(tx, ctx.org, name)) is None:
        policy.check_making(ctx.principal, name)


async def _claimed(tx: Tx, ctx: Ctx, project: Project) -> banks.Bank:
    """The bank of a project, which is its alone from now on."""
    bank = await projects.bank_for(tx, ctx.store, ctx.org, project, ctx.now)
    ctx.stay_in(bank.name)
    return bank


class ListBanks(Given):
    """Nothing to say."""


class Banks(Result):
    """The banks that this principal may see."""

    banks: list[Bank] = Field(description="By name.")


@operation("bank.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListBanks) -> Banks:
    """List the memory banks that you may see."""

    async def body(tx: Tx) -> Banks:
        rows, learnt = await banks.listed(tx, ctx.org), await repos.listed(tx, ctx.org)
        seen = [bank for bank in rows if ctx.principal.sees(bank.name)]
        return Banks(banks=[shown(bank, learnt.get(bank.id)) for bank in seen])

    return await ctx.read(body)


class CreateBank(Given):
    """A new bank."""

    name: BankName = Field(description="The name for the new bank.")
    title: Title = Field("", max_length=200, description="Human-friendly name for the bank.")
    mission: Clean = Field("", max_length=10_000, description="Who the agent is and what it is trying to accomplish.")


@operation("bank.create", effect=Effect.MUTATE, scope="bank:admin")
async def create(ctx: Ctx, given: CreateBank) -> Bank:
    """Create a memory bank; one that exists already is returned unchanged."""
    policy.check_bank(ctx.principal, given.name)
    if existing := await ctx.read(lambda tx: banks.named(tx, ctx.org, given.name)):
        return shown(existing)

    async def body(tx: Tx) -> Changed[banks.Bank]:
        made = await banks.create(tx, ctx.store, ctx.org, given.name, given.title, given.mission)
        bank = made or await ensured(tx, ctx, given.name)
        return Changed(bank, bank.id, [bank.id], given.model_dump_json())

    return shown(await ctx.change(body))


@operation("bank.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: InBank) -> Bank:
    """Tell a bank's name, mission and disposition."""

    async def body(tx: Tx) -> Bank:
        bank = await found(tx, ctx, given.bank)
        if bank is None:
            name, _ = wanted(ctx, given.bank)
            return Bank(name=name, title=name, mission="", disposition=dict(banks.DISPOSITION))
        return shown(bank, await repos.get(tx, ctx.org, bank.id))

    return await ctx.read(body)


class UpdateBank(InBank):
    """What to change; what is left out stays."""

    title: Title | None = Field(None, max_length=200, description="New human-friendly name for the bank.")
    mission: Clean | None = Field(None, max_length=10_000, description="New mission of the bank.")


@operation("bank.update", effect=Effect.MUTATE, scope="bank:admin")
async def update(ctx: Ctx, given: UpdateBank) -> Bank:
    """Change a bank's human-friendly name or mission."""

    async def body(tx: Tx) -> Changed[banks.Bank]:
        bank = await ensured(tx, ctx, given.bank)
        title = bank.title if given.title is None else given.title
        mission = bank.mission if given.mission is None else given.mission
        await banks.update(tx, bank, title, mission)
        changed = await banks.named(tx, ctx.org, bank.name)
        return Changed(changed or bank, bank.id, [bank.id], given.model_dump_json())

    return shown(await ctx.change(body))


class Stats(Result):
    """How much a bank holds, true at once."""

    bank: str = Field(description="Name of the bank.")
    memories: int = Field(description="Memories that hold now.")
    by_type: dict[str, int] = Field(description="The same by fact type.")
    documents: int = Field(description="Documents.")
    links: int = Field(description="Links between memories.")
    by_link: dict[str, int] = Field(description="The same by reason.")
    tags: int = Field(description="Distinct tags.")
    unsharpened: int = Field(description="Memories whose sharper vector is still to come from the background.")


@operation("bank.stats", effect=Effect.READ, scope="memory:read")
async def stats(ctx: Ctx, given: InBank) -> Stats:
    """Count the memories, links, documents and tags of a bank."""
    name, _ = wanted(ctx, given.bank)

    async def body(tx: Tx) -> Stats:
        bank = await found(tx, ctx, given.bank)
        if bank is None:
            return Stats(bank=name, memories=0, by_type={}, documents=0, links=0, by_link={}, tags=0, unsharpened=0)
        by_type = await memories.counts(tx, ctx.org, bank.id, ctx.now)
        by_link = await memories.links(tx, ctx.org, bank.id)
        return Stats(
            bank=bank.name,
            memories=sum(by_type.values()),
            by_type=by_type,
            documents=await sources.count(tx, ctx.org, bank.id, "document"),
            links=sum(by_link.values()),
            by_link=by_link,
            tags=len(await memories.tags(tx, ctx.org, bank.id, ctx.now)),
            unsharpened=await embeddings.waiting(tx, ctx.org, bank.id),
        )

    return await ctx.read(body)


@operation("bank.delete", effect=Effect.DESTRUCTIVE, scope="bank:admin memory:delete")
async def delete(ctx: Ctx, given: InBank) -> Receipt:
    """Permanently delete a bank and all its data; leaves a receipt."""
    await ctx.app.embedding.static_model(ctx.store)
    gone: list[int] = []

    async def body(tx: Tx) -> Changed[Receipt]:
        bank = await found(tx, ctx, given.bank)
        if bank is None:
            raise NotFound("The bank has no data yet, so there is nothing to delete.")
        gone[:] = [bank.id]
        await banks.step(tx, ctx.org, bank.id)
        documents = await sources.count(tx, ctx.org, bank.id, "document")
        ids = await memories.of_types(tx, ctx.org, bank.id, ())
        receipt = await forgetting.forget(tx, ctx, bank, ids, documents=documents)
        await banks.delete(tx, ctx.org, bank.id)
        return Changed(receipt, bank.id, [bank.id])

    receipt = await ctx.change(body)
    for bank in gone:
        await asyncio.to_thread(mirror.drop, ctx.app.settings.data_dir, ctx.org, bank)
    return receipt
