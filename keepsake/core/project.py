"""Which project is meant: a name for the eye, and an identity that no two projects share; no pydantic here."""

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import unquote

from keepsake.core import bank_name

#: Forges that hold `Owner/Repo` and `owner/repo` for one.
_CASELESS = frozenset({"github", "gitlab", "bitbucket", "codeberg", "gitea", "forgejo"})
#: Where forges take SSH on the port of HTTPS.
_DOORS = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com", "altssh.bitbucket.org": "bitbucket.org"}
#: `host:path` as scp writes it; one letter before the colon is a drive of Windows.
_SCP = re.compile(r"(?:[^@/\s]+@)?(\[[0-9A-Fa-f:.]+\]|[^:/\\\s@]{2,}):(?!//)(.+)", re.DOTALL)
_URL = re.compile(
    r"(?:[a-z]+\+)?(?:ssh|https?|git)(?:\+[a-z]+)?://(?:[^/]*@)?(\[[^\]]*\]|[^:/@]+)(?::\d*)?/(.*)", re.I | re.DOTALL
)
#: The bank of whoever names none; a folder that happens to be called so is no part of it.
_EVERYONES = "default"


@dataclass(frozen=True, slots=True)
class Project:
    """What a folder belongs to."""

    #: `git:host/owner/repo`, `dir:/path`, or the bare name that an override file gives.
    identity: str
    #: What its bank is called, if no other project came first.
    name: str
    #: Top folder of the working tree.
    root: str
    #: Branch that is checked out; empty outside a repository, and where none is.
    branch: str = ""


def remote(url: str) -> str | None:
    """A git remote as `host/owner/repo`, without scheme, user, secret and port; None for one on this machine."""
    url = url.strip()
    match = _URL.fullmatch(url) or ("://" not in url and _SCP.fullmatch(url)) or None
    if match is None:
        return None
    host = match[1].lower().rstrip(".")
    host = _DOORS.get(host, host)
    path = unquote(re.split(r"[?#]", match[2], maxsplit=1)[0]).strip("/").removesuffix(".git").rstrip("/")
    parts = [part for part in path.split("/") if part not in {"", ".", ".."}]
    if not parts:
        return None
    path = "/".join(parts)
    return f"{host}/{path.lower() if _CASELESS & set(host.split('.')) else path}"


def named(text: str) -> str:
    """The nearest that may be the name of a bank."""
    kept = re.sub(r"[\s/\\\x00-\x1f\x7f-\x9f]+|\.{2,}", "-", plain(text)).strip("-. ")
    return kept[: bank_name.LONGEST].rstrip("-. ") or "project"


def plain(text: str) -> str:
    """Text that every store takes, from a path that may hold any bytes."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "")


def candidates(project: Project) -> tuple[str, ...]:
    """Names for the project's bank, the best first; the last is its alone."""
    if not is_placed(project.identity):
        return (project.name,)
    parts = [part for part in re.split(r"[/\\]", project.identity.partition(":")[2]) if part not in {"", ".git"}]
    short = hashlib.sha256(project.identity.encode()).hexdigest()[:8]
    owned = named(f"{parts[-2]}-{project.name}") if len(parts) > 1 else project.name
    cut = project.name[: bank_name.LONGEST - len(short) - 1]
    first = () if project.name == _EVERYONES else (project.name,)
    return tuple(dict.fromkeys((*first, owned, f"{cut}-{short}")))


def is_placed(identity: str) -> bool:
    """Whether an identity tells a place, which no name of a bank can be mistaken for."""
    return "/" in identity or "\\" in identity
