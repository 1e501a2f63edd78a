"""The heads of the audit chains, signed and taken elsewhere: against them even a whole rewritten chain shows."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from keepsake.context import Ctx
from keepsake.core import clock
from keepsake.core.errors import Conflict
from keepsake.core.lazy import lazy
from keepsake.core.models import Given
from keepsake.core.proposal import canonical
from keepsake.store import audit, signing
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    from keepsake.services import signature
else:
    signature = lazy("keepsake.services.signature")

#: What is signed begins with this, so that no signature of ours passes for another kind of statement.
_KIND = "keepsake audit heads 1\n"
Hex = Annotated[str, Field(pattern="^[0-9a-f]+$", max_length=128)]


class Head(Given):
    """The end of one chain."""

    chain: str = Field(pattern="^[0-9]{1,16}$", description="Id of the chain: the bank's, or 0 for the org.")
    entries: int = Field(ge=1, le=2**53, description="How many entries it has.")
    hash: Hex = Field(description="Hash over all of them.")


class SignedHeads(Given):
    """The ends of all chains at one moment, signed by the server."""

    org: int = Field(ge=1, le=2**53, description="Number of the org.")
    at: str = Field(max_length=64, description="When, ISO 8601.")
    heads: list[Head] = Field(max_length=1_000_000, description="The end of each chain.")
    public_key: Hex = Field(description="Ed25519 key of the server, in hex.")
    signature: Hex = Field(description="Signature over all of the above but the key, in hex.")

    @property
    def text(self) -> str:
        """What is signed."""
        return _KIND + canonical(self.model_dump(include={"org", "at", "heads"}))


async def signed(ctx: Ctx, heads: list[audit.Head]) -> SignedHeads:
    """These heads, signed."""
    seed = await signing.seed(ctx.store.engine)
    told = [Head(chain=str(head.bank), entries=head.n, hash=head.hash) for head in heads]
    draft = SignedHeads(
        org=ctx.org, at=clock.iso(ctx.now), heads=told, public_key=signature.public_key(seed), signature="0"
    )
    return draft.model_copy(update={"signature": signature.signed(seed, draft.text)})


async def check(ctx: Ctx, export: SignedHeads) -> None:
    """Refuse an export that this server did not sign, or that was changed since."""
    if not signature.fits(export.public_key, export.text, export.signature):
        raise Conflict("The export was changed after it was signed. Use the file as it was written.")
    if export.public_key != signature.public_key(await signing.seed(ctx.store.engine)) or export.org != ctx.org:
        raise Conflict(
            "The export was signed by another server, or this server's signing key was replaced since. If it is this"
            " server's export, somebody has changed its database."
        )


async def broken(tx: Tx, ctx: Ctx, export: SignedHeads) -> list[audit.Chain]:
    """The chains that are shorter or other than when they were exported."""
    found = []
    for head in export.heads:
        bank = int(head.chain)
        if await audit.hash_at(tx, ctx.org, bank, head.entries) != head.hash:
            found.append(audit.Chain(bank, 0, head.entries))
    return found
