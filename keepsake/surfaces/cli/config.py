"""`keepsake config`: the effective settings, and where each came from."""

from pathlib import Path
from urllib.parse import urlsplit

import typer

from keepsake.settings import SETTINGS, Setting, Settings
from keepsake.surfaces.cli import show
from keepsake.surfaces.cli.options import DatabaseUrl, DataDir, Json, effective

app = typer.Typer(help="Look at the settings.")
HIDDEN = "********"


@app.callback()
def group() -> None:
    """Look at the settings."""


@app.command("list")
def list_(data_dir: DataDir = None, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Show every setting: its value, where that came from, and what it means; secrets are hidden."""
    settings = effective(data_dir, database_url)
    if as_json:
        show.document({"settings": [_told(setting, settings) for setting in SETTINGS]})
        return
    cells = [
        (setting.variable, _text(shown(setting, settings)) or "-", settings.origins[setting.name], setting.meaning)
        for setting in SETTINGS
    ]
    show.rows(("SETTING", "VALUE", "FROM", "MEANING"), cells)


def _text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _told(setting: Setting, settings: Settings) -> dict[str, object]:
    return {
        "name": setting.name,
        "variable": setting.variable,
        "aliases": list(setting.aliases),
        "value": shown(setting, settings),
        "from": settings.origins[setting.name],
        "meaning": setting.meaning,
    }


def shown(setting: Setting, settings: Settings) -> object:
    """A value as it may be seen."""
    value: object = getattr(settings, setting.name)
    if setting.name == "database_url" and settings.database_url:
        return place(settings.database_url)
    if setting.secret:
        return HIDDEN if value else ""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def place(url: str) -> str:
    """Where a database is, without who may enter it and how."""
    try:
        parts = urlsplit(url)
        host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        return HIDDEN
    return f"{parts.scheme}://{host}{parts.path}" if parts.scheme.startswith("postgres") else HIDDEN
