"""Every tool that can be read, by the name it has on the command line."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keepsake.importers import claude_code, claude_mem, codex, kiro_memory, mcp_memory
from keepsake.importers.record import Found, Steps


@dataclass(frozen=True, slots=True)
class Source:
    """One tool."""

    name: str
    what: str
    #: Where its files are on this machine, as far as that can be known.
    place: Callable[[], Path | None]
    #: How much there is; raises BadInput for a path that holds something else.
    found: Callable[[Path], Found]
    read: Callable[[Path], Steps]


SOURCES = {
    source.name: source
    for source in (
        Source(
            claude_code.NAME, "the transcripts of Claude Code", claude_code.place, claude_code.found, claude_code.read
        ),
        Source(codex.NAME, "the transcripts of Codex", codex.place, codex.found, codex.read),
        Source(
            kiro_memory.NAME,
            "the database of kiro-memory (Total Recall, ContextKit)",
            kiro_memory.place,
            kiro_memory.found,
            kiro_memory.read,
        ),
        Source(claude_mem.NAME, "the database of claude-mem", claude_mem.place, claude_mem.found, claude_mem.read),
        Source(
            mcp_memory.NAME,
            "the JSONL file of MCP's reference memory server",
            mcp_memory.place,
            mcp_memory.found,
            mcp_memory.read,
        ),
    )
}
