"""Other names of a bank: what it was called before, and the projects whose memories it holds."""

from typing import Annotated

from pydantic import AfterValidator, Field

from keepsake.auth import policy
from keepsake.context import Changed, Ctx
from keepsake.core.errors import BadInput, Conflict, NotFound
from keepsake.core.models import BankName, InBank, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.project import is_placed
from keepsake.core.text import Clean
from keepsake.ops import banks as bank_ops
from keepsake.services import repository
from keepsake.store import banks, keys, projects
from keepsake.store.engine import Tx


def _identity(text: str) -> str:
    if not text.startswith(("git:", "dir:")) or not is_placed(text):
        raise ValueError("must be a project such as git:github.com/owner/repo or dir:/path/to/folder")
    return text


Identity = Annotated[Clean, Field(max_length=4_096), AfterValidator(_identity)]


class AliasBank(InBank):
    """Another name for a bank, or one more project that it belongs to."""

    name: BankName | None = Field(None, description="The other name.")
    project: Identity | None = Field(
        None, description="A project that belongs to the bank from now on, such as git:github.com/owner/repo."
    )
    rename: bool = Field(False, description="Whether the bank is shown under that name from now on.")


class Names(Result):
    """Everything that a bank is known by."""

    bank: str = Field(description="The name that it is shown under.")
    aliases: list[str] = Field(description="Its other names.")
    projects: list[str] = Field(description="The projects whose memories it holds.")


@operation("bank.alias", effect=Effect.MUTATE, scope="bank:admin")
async def alias(ctx: Ctx, given: AliasBank) -> Names:
    """Give a bank another name, so that it keeps its history when a project is renamed."""
    if given.name is None and (given.project is None or given.rename):
        raise BadInput("Say the bank's other name, or the project that belongs to it.")
    if given.name is not None:
        policy.check_bank(ctx.principal, given.name)

    async def body(tx: Tx) -> Changed[Names]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            raise NotFound("The bank has no data yet, so it needs no other name.")
        if given.name is not None:
            await _named(tx, ctx, bank, given.name)
            if given.rename:
                await banks.rename(tx, bank, given.name)
        if given.project is not None:
            await _joined(tx, ctx, bank, given.project)
        held = await banks.of_id(tx, ctx.org, bank.id)
        return Changed(await _shown(tx, held or bank), bank.id, [bank.id], given.model_dump_json())

    return await ctx.change(body)


async def _named(tx: Tx, ctx: Ctx, bank: banks.Bank, name: str) -> None:
    other = await projects.claim(tx, bank, name)
    if other is not None and other != bank.id:
        raise Conflict(
            f"There is a bank {name!r} already. Choose another name; to send a project's memories to this bank instead,"
            " give its project."
        )
    await keys.reach(tx, ctx.org, frozenset(await projects.names(tx, ctx.org, bank.id)), name)


async def _joined(tx: Tx, ctx: Ctx, bank: banks.Bank, project: str) -> None:
    """Give a project to the bank; one that it takes from another bank must be within reach too."""
    other = await banks.named(tx, ctx.org, project)
    if other is not None:
        policy.check_bank(ctx.principal, other.name)
    await projects.move(tx, bank, project)


async def _shown(tx: Tx, bank: banks.Bank) -> Names:
    names = await projects.names(tx, bank.org, bank.id)
    return Names(
        bank=bank.name,
        aliases=[name for name in names if not is_placed(name) and name != bank.name],
        projects=[name for name in names if is_placed(name)],
    )


def project_of(folder: str) -> str:
    """The project that a folder of this machine belongs to."""
    identity = repository.project_of(folder).identity
    if not is_placed(identity):
        raise BadInput(f"An override file says that {folder} belongs to the bank {identity!r}; change that file.")
    return identity
