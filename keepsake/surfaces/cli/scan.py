"""`keepsake scan`: finds secrets that older versions let in, and takes them out."""

import asyncio
from typing import Annotated

import typer

from keepsake.ops import banks
from keepsake.ops import scan as scanning
from keepsake.ops.scan import Redaction, Scanned
from keepsake.settings import Settings
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective
from keepsake.surfaces.cli.reach import Reach, reached

Bank = Annotated[str | None, typer.Option("--bank", metavar="BANK", help="Only this bank; every bank when left out.")]
Fix = Annotated[bool, typer.Option("--fix", help="Take the secrets out, for good.")]


def scan(
    bank: Bank = None,
    fix: Fix = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Find secrets in what is stored; shows ids and kinds, never the secrets. Ends with 1 when any are left."""
    settings = effective(data_dir, database_url)
    if fix:
        _tell_fixed(asyncio.run(_redacted(settings, bank)), as_json)
        return
    found = asyncio.run(_scanned(settings, bank))
    _tell_found(found, as_json)
    if any(each.total for each in found):
        raise typer.Exit(1)


async def _names(reach: Reach, bank: str | None) -> list[str]:
    if bank is not None:
        return [bank]
    held = await reach.call(banks.list_, {})
    assert isinstance(held, banks.Banks)
    return [each.name for each in held.banks]


async def _scanned(settings: Settings, bank: str | None) -> list[Scanned]:
    async with reached(settings) as reach:
        found = [await reach.call(scanning.scan, {"bank": name}) for name in await _names(reach, bank)]
    return [each for each in found if isinstance(each, Scanned)]


async def _redacted(settings: Settings, bank: str | None) -> list[Redaction]:
    async with reached(settings) as reach:
        made = [await reach.call(scanning.redact, {"bank": name}) for name in await _names(reach, bank)]
    return [each for each in made if isinstance(each, Redaction)]


def _tell_found(found: list[Scanned], as_json: bool) -> None:
    if as_json:
        show.document({"banks": [each.model_dump(mode="json") for each in found]})
        return
    total, looked_at = sum(each.total for each in found), sum(each.looked_at for each in found)
    if not total:
        show.line(f"No secrets found in {looked_at} texts.")
        return
    cells = [(each.bank, one.kind, one.id, ", ".join(one.secrets)) for each in found for one in each.findings]
    show.rows(("BANK", "WHAT", "ID", "SECRETS"), cells)
    show.line()
    show.line(f"Secrets in {total} of {looked_at} texts. `keepsake scan --fix` takes them out, for good.")


def _tell_fixed(made: list[Redaction], as_json: bool) -> None:
    if as_json:
        show.document({"banks": [each.model_dump(mode="json") for each in made]})
        return
    for each in made:
        if each.receipts:
            told = f"memories {each.memories}, documents {each.documents}, other texts {each.others}"
            show.line(f"{each.bank}: {told}; receipts {', '.join(each.receipts)}")
    if not any(each.receipts for each in made):
        show.line("No secrets found, nothing changed.")
