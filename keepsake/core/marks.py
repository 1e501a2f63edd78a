"""What stands around text that Keepsake injects, and what must never be captured: that, and what is private."""

import re

OPEN = "<keepsake-memory>"
CLOSE = "</keepsake-memory>"
#: What clients put into prompts by themselves is nobody's word either.
_TAGS = "private|keepsake-memory|system-reminder|task-notification|local-command-stdout|local-command-caveat"
#: A part that was opened and never closed goes whole: better too little kept than something private.
_HIDDEN = re.compile(rf"<({_TAGS})\b[^>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
#: Tools of ours, under the names that clients give them: mcp__keepsake__recall, keepsake_recall, @keepsake/recall.
_OURS = re.compile(r"(?:^|[^a-z0-9])keepsake(?:[^a-z0-9]|$)", re.IGNORECASE)


def visible(text: str) -> str:
    """A text without its private parts, and without what was injected."""
    if "<" not in text:
        return text
    kept = _HIDDEN.sub("", text)
    return kept.strip() if len(kept) != len(text) else text


def is_ours(name: str) -> bool:
    """Whether a tool, server or command is one of Keepsake's own."""
    return bool(_OURS.search(name))
