"""What comes in by query or form: each field once, in bounds, and from our own pages where it must be."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request

from keepsake.auth.oauth import Refused
from keepsake.core.errors import KeepsakeError, WrongOrigin
from keepsake.surfaces import bodies

#: Characters of a field, of a query; bytes of a form.
LONGEST_FIELD, LONGEST_QUERY, LARGEST = 4_096, 8_192, 16_384
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a request; one that is empty counts as left out."""

    found: Mapping[str, Sequence[str]]

    def one(self, name: str, longest: int = LONGEST_FIELD) -> str:
        """A field that must be there."""
        value = self.maybe(name, longest)
        if value is None:
            raise Refused("invalid_request", f"`{name}` is missing.")
        return value

    def maybe(self, name: str, longest: int = LONGEST_FIELD) -> str | None:
        """A field that may be left out; there is never more than one."""
        values = self.found.get(name, ())
        if len(values) > 1:
            raise Refused("invalid_request", f"`{name}` is there more than once.")
        if not values:
            return None
        if len(values[0]) > longest or any(ord(letter) < 32 or ord(letter) == 127 for letter in values[0]):
            raise Refused("invalid_request", f"`{name}` is too long, or has characters that it must not have.")
        return values[0]

    def all(self, name: str) -> Sequence[str]:
        """Every value of a field."""
        return self.found.get(name, ())


def _parsed(text: str) -> Fields:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=2_000)
    except ValueError as error:
        raise Refused("invalid_request", "The fields cannot be read.") from error
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        # Twice is once too often, be it empty or not.
        found.setdefault(name, []).append(value)
    return Fields({name: values for name, values in found.items() if values != [""]})


def of_query(request: Request) -> Fields:
    """The fields of a query."""
    if len(request.url.query) > LONGEST_QUERY:
        raise Refused("invalid_request", "The query is too long.")
    return _parsed(request.url.query)


async def of_body(request: Request, limit: int = LARGEST) -> Fields:
    """The fields of a form."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise Refused("invalid_request", f"Send a form, as {FORM}.")
    try:
        return _parsed((await bodies.read(request, limit)).decode("ascii"))
    except UnicodeError as error:
        raise Refused("invalid_request", "The form cannot be read.") from error
    except bodies.TooLarge as error:
        raise Refused("invalid_request", "The form is too large.", 413) from error


def typed(fields: Fields, name: str) -> str:
    """What was typed into a field, as it was: a password may hold any character."""
    return next(iter(fields.all(name)), "")


def token(secret: str) -> str:
    """What a form must carry to have come from a page of ours; `secret` is in a cookie that scripts cannot read."""
    return hmac.digest(hashlib.sha256(secret.encode()).digest(), b"keepsake form", "sha256").hex()


def check_own(request: Request, fields: Fields, secret: str | None, whole: str) -> None:
    """Refuse a form that no page of ours sent; `whole` is the address under which browsers know us."""
    origin, host = request.headers.get("origin"), request.headers.get("host", "")
    if origin is None:
        is_ours = request.headers.get("sec-fetch-site") == "same-origin"
    else:
        is_ours = origin == whole or (urlsplit(origin).netloc.lower() == host.lower() and bool(host))
    given = next(iter(fields.all("csrf")), "")
    if not is_ours or secret is None or not hmac.compare_digest(token(secret).encode(), given.encode()):
        raise WrongOrigin("This form is not from a page of this server, or is too old. Go back and try again.")


def told(error: KeepsakeError) -> dict[str, str]:
    """A refusal as OAuth tells it."""
    kind = error.kind if isinstance(error, Refused) else "server_error"
    return {"error": kind, "error_description": str(error)}
