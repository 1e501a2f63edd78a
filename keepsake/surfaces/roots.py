"""The folder that a stdio client has open: asked of the client, for many start their servers somewhere else."""

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from keepsake.core import log

#: How long a client may think about it, once a session.
PATIENCE_S = 3.0


@dataclass(slots=True)
class Roots:
    """What the client said, until it says that it has changed."""

    folder: str = ""
    is_known: bool = False

    async def learn(self, session: Any) -> None:
        """Ask the client, unless it was asked before or cannot tell."""
        declared = session.client_capabilities
        if self.is_known or declared is None or declared.roots is None or not session.can_send_request:
            return
        self.is_known = True
        try:
            told = await session.send_request(types.ListRootsRequest(), types.ListRootsResult, PATIENCE_S)
        except (MCPError, ValidationError) as error:
            log.info("the client did not tell its folder", error=type(error).__name__)
            return
        self.folder = next((folder for root in told.roots if (folder := _folder(str(root.uri)))), "")

    async def moved(self, incoming: Any, params: types.NotificationParams) -> None:
        """Ask again before the next call, for the client has another folder open."""
        self.is_known = False


def _folder(uri: str) -> str:
    """The folder that a root names; empty for one that is not of this machine, or is not there."""
    parts = urlsplit(uri)
    path = url2pathname(parts.path) if parts.scheme == "file" and parts.netloc in ("", "localhost") else ""
    return path if "\x00" not in unquote(path) and os.path.isdir(path) else ""
