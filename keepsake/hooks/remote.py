"""A running server instead of the store: one POST, given up early."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from keepsake.core.lazy import lazy
from keepsake.hooks.direct import Unwritable
from keepsake.settings import Settings
from keepsake.store import events
from keepsake.store.events import Event

if TYPE_CHECKING:
    from http import client
else:
    client = lazy("http.client")

#: Seconds for a server to answer; one that is far away or dead must not hold up an editor.
PATIENCE_S = 1.5


def post(settings: Settings, told: Sequence[Event]) -> str:
    """Hand events to the server; gives back the text to inject after the last of them. Raises Unwritable."""
    try:
        place = urlsplit(settings.url)
        secure = place.scheme == "https"
        made = client.HTTPSConnection if secure else client.HTTPConnection
        connection = made(place.hostname or "", place.port, timeout=PATIENCE_S)
    except ValueError as error:
        raise Unwritable("KEEPSAKE_URL is no address") from error
    headers = {"Content-Type": "application/x-ndjson"}
    if settings.api_key:
        headers["Authorization"] = f"Bearer {settings.api_key}"
    try:
        body = "".join(f"{events.written(event)}\n" for event in told).encode("utf-8", "replace")
        connection.request("POST", f"{place.path.rstrip('/')}/hooks/keepsake", body, headers)
        answer = connection.getresponse()
        said = answer.read(200_000)
    except (OSError, client.HTTPException) as error:
        raise Unwritable(type(error).__name__) from error
    finally:
        connection.close()
    if answer.status != 200:
        raise Unwritable(f"HTTP {answer.status}")
    return _context(said)


def _context(said: bytes) -> str:
    try:
        context = json.loads(said)["context"]
    except (ValueError, KeyError, TypeError) as error:
        raise Unwritable("the answer is not Keepsake's") from error
    return context if isinstance(context, str) else ""
