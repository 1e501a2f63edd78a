"""Projects and the banks that hold their memories; a project's identity is one more name of its bank."""

from keepsake.core.errors import Conflict
from keepsake.core.project import Project, candidates, is_placed
from keepsake.store import banks
from keepsake.store.banks import Bank
from keepsake.store.engine import Tx
from keepsake.store.store import Store

_NOT_ITS_OWN = "A name made of a project's own digest belongs to another project."


async def find(tx: Tx, org: int, project: Project) -> int | None:
    """The bank of a project; None when it has none yet."""
    row = await tx.one("SELECT bank FROM bank_names WHERE org = :org AND name = :name", org=org, name=project.identity)
    return None if row is None else int(row["bank"])


async def expected(tx: Tx, org: int, project: Project) -> str:
    """The name of a project's bank: of the one that it has, else of the one that it would get now."""
    if bank := await banks.named(tx, org, project.identity):
        return bank.name
    for name in candidates(project):
        bank = await banks.named(tx, org, name)
        if bank is None or not await _is_taken(tx, bank):
            return bank.name if bank else name
    raise RuntimeError(_NOT_ITS_OWN)


async def bank_for(tx: Tx, store: Store, org: int, project: Project, now: int) -> Bank:
    """The bank of a project, made when it has none."""
    if bank := await banks.named(tx, org, project.identity):
        return bank
    if not is_placed(project.identity):
        return await banks.create(tx, store, org, project.name) or await _known(tx, org, project.name)
    # Whoever claims the identity first names the bank; all others wait here for that transaction.
    if not await tx.one(
        "INSERT INTO bank_names (org, name, bank) VALUES (:org, :name, 0)"
        " ON CONFLICT (org, name) DO NOTHING RETURNING bank",
        org=org,
        name=project.identity,
    ):
        return await _known(tx, org, project.identity)
    bank = await _named(tx, store, org, project)
    await tx.run(
        "UPDATE bank_names SET bank = :bank WHERE org = :org AND name = :name",
        bank=bank.id,
        org=org,
        name=project.identity,
    )
    await tx.run(
        "UPDATE banks SET repo = :repo, updated_at = :now WHERE org = :org AND bank = :bank AND repo = ''",
        repo=project.identity.partition("git:")[2],
        now=now,
        org=org,
        bank=bank.id,
    )
    return bank


async def claim(tx: Tx, bank: Bank, name: str) -> int | None:
    """Give a bank one more name; tells the bank that has it already."""
    await tx.run(
        "INSERT INTO bank_names (org, name, bank) VALUES (:org, :name, :bank) ON CONFLICT (org, name) DO NOTHING",
        org=bank.org,
        name=name,
        bank=bank.id,
    )
    row = await tx.one("SELECT bank FROM bank_names WHERE org = :org AND name = :name", org=bank.org, name=name)
    return None if row is None else int(row["bank"])


async def move(tx: Tx, bank: Bank, identity: str) -> None:
    """Let a project belong to this bank, whichever it belonged to."""
    await tx.run(
        "INSERT INTO bank_names (org, name, bank) VALUES (:org, :name, :bank)"
        " ON CONFLICT (org, name) DO UPDATE SET bank = excluded.bank",
        org=bank.org,
        name=identity,
        bank=bank.id,
    )


async def names(tx: Tx, org: int, bank: int) -> list[str]:
    """Every name of a bank: its own, its aliases, and the projects that it belongs to."""
    rows = await tx.all(
        "SELECT name FROM bank_names WHERE org = :org AND bank = :bank ORDER BY name", org=org, bank=bank
    )
    return [row["name"] for row in rows]


async def _named(tx: Tx, store: Store, org: int, project: Project) -> Bank:
    for name in candidates(project):
        if bank := await banks.create(tx, store, org, name) or await _unclaimed(tx, org, name):
            return bank
    raise RuntimeError(_NOT_ITS_OWN)


async def _unclaimed(tx: Tx, org: int, name: str) -> Bank | None:
    """A bank that was made by hand under this name and belongs to no project yet."""
    bank = await banks.named(tx, org, name)
    if bank is None:
        return None
    # Two projects that ask for it at the same time must not both get it.
    await banks.step(tx, org, bank.id)
    return None if await _is_taken(tx, bank) else bank


async def _is_taken(tx: Tx, bank: Bank) -> bool:
    """Whether a bank belongs to a project."""
    return any(is_placed(each) for each in await names(tx, bank.org, bank.id))


async def _known(tx: Tx, org: int, name: str) -> Bank:
    if bank := await banks.named(tx, org, name):
        return bank
    raise Conflict("The project's bank was deleted a moment ago. Try again.")
