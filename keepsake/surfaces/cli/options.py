"""Options that many commands share."""

from pathlib import Path
from typing import Annotated

import typer

from keepsake import settings
from keepsake.core.errors import BadInput
from keepsake.settings import Settings

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
DataDir = Annotated[str | None, typer.Option("--data-dir", metavar="FOLDER", help="Folder of the SQLite database.")]
DatabaseUrl = Annotated[str | None, typer.Option("--database-url", metavar="URL", help="PostgreSQL to use instead.")]


def effective(
    data_dir: str | None, database_url: str | None, host: str | None = None, port: int | None = None
) -> Settings:
    """The settings with the flags of this command over them."""
    return settings.load(data_dir=_folder(data_dir), database_url=database_url, host=host, port=port)


def _folder(text: str | None) -> Path | None:
    try:
        return None if text is None else settings.folder(text)
    except ValueError as error:
        raise BadInput(f"--data-dir {error}.") from error
