"""Where a repository is: an https address or a folder of this machine, and nothing else."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SCP = re.compile(r"[^/\\\s:]{2,}:(?!//)[^\\]")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d{1,5})?")
_PATH = re.compile(r"(?:/[\w.~%+@-]+)+/?")
_NAME = re.compile(r"[\w.-]+/[\w.-]+")
HOW = "Give an https:// address, or on this machine the folder of a repository."


@dataclass(frozen=True, slots=True)
class Address:
    """A checked place of a repository."""

    #: As it is stored and shown; nothing secret can be in it.
    place: str
    #: The host of an address, with its port where it names one; empty for a folder.
    host: str = ""

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return not self.host


def checked(told: str) -> Address:
    """Read what someone gave; ValueError says, in a sentence that repeats nothing, why it cannot be used."""
    told = told.strip()
    if not told:
        raise ValueError(f"The repository is empty. {HOW}")
    if scheme := _SCHEME.match(told):
        return _address(told, scheme[1].lower())
    if _SCP.match(told) and not re.match(r"[A-Za-z]:[\\/]", told):
        raise ValueError(f"Repositories are not read over ssh. {HOW}")
    if not told.startswith("/") and not re.match(r"[A-Za-z]:[\\/]", told):
        raise ValueError(f"The folder of a repository must be given whole, from the root on. {HOW}")
    return Address(told)


def _address(told: str, scheme: str) -> Address:
    if scheme != "https":
        raise ValueError(f"Repositories are not read over {scheme}. {HOW}")
    if "@" in told.removeprefix("https://").partition("/")[0]:
        raise ValueError(
            "The address holds a user or a password. Leave them out: a private repository of GitHub is read with"
            " KEEPSAKE_GITHUB_TOKEN."
        )
    parts = urlsplit(told)
    if parts.query or parts.fragment or not _HOST.fullmatch(parts.netloc) or not _PATH.fullmatch(parts.path):
        raise ValueError("That is not the address of a repository, such as https://github.com/owner/name.")
    if any(part in (".", "..") for part in parts.path.split("/")):
        raise ValueError("That is not the address of a repository, such as https://github.com/owner/name.")
    host = parts.netloc.lower()
    return Address(f"https://{host}{parts.path.rstrip('/')}", host)


def full_name(place: str, website: str) -> str:
    """`owner/name` of a repository on that website, from its address or from `host/owner/name`; else empty."""
    host, _, path = place.removeprefix("https://").partition("/")
    name = path.removesuffix(".git")
    return name if host.lower() == website.lower() and _NAME.fullmatch(name) else ""
