"""What an operator enrols: one command or HTTP call, the arguments it takes, and how it may be run."""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated, Literal, Self
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, Field, model_validator

from keepsake.core import template
from keepsake.core.models import Given, KnownBank
from keepsake.core.proposal import canonical
from keepsake.core.template import ENV, Values
from keepsake.core.text import Clean, CleanJson

Effect = Literal["read", "mutate", "destructive"]
#: Who says yes: nobody, one person, one who is not the requester even in an org of one, two, or the asking client.
Policy = Literal["none", "person", "other-person", "two-persons", "elicitation", "sampling"]
LONGEST_WORD = 100_000
#: Ours are secrets, and the loader's would change what the program is.
_NOT_PASSED = ("KEEPSAKE_", "HINDSIGHT_", "XEROTIER_", "LD_", "BASH_ENV", "ENV")
_NOT_SENT = {"host", "content-length", "transfer-encoding", "connection", "upgrade"}
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
        raise ValueError("must be the name of an environment variable")
    if name.upper().startswith(_NOT_PASSED[:4]) or name.upper() in _NOT_PASSED[4:]:
        raise ValueError("must not be a variable of Keepsake's own, nor one of the loader or shell")
    return name


def _path(path: str) -> str:
    parts = path.split("/")
    if not path.startswith("/") or path == "/" or any(part in (".", "..") for part in parts):
        raise ValueError("must be a whole path from the root on, without '..', and not the root itself")
    if parts[1] in ("proc", "sys", "dev"):
        raise ValueError("must not be part of /proc, /sys or /dev")
    return path.rstrip("/")


def _schema(schema: dict[str, object]) -> dict[str, object]:
    if schema.get("type", "object") != "object":
        raise ValueError("must be the schema of an object")
    return {"additionalProperties": False, **schema, "type": "object"}


def _template(text: str) -> str:
    template.names(text)
    return text


Variable = Annotated[Clean, AfterValidator(_variable)]
Path = Annotated[Clean, Field(max_length=1_000), AfterValidator(_path)]
Template = Annotated[Clean, Field(max_length=10_000), AfterValidator(_template)]


class HttpCall(Given):
    """A call over HTTP."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field("POST", description="The method.")
    url: Template = Field(max_length=2_000, description="The address; values may stand in its path and query.")
    headers: dict[Clean, Template] = Field(
        default_factory=dict, max_length=50, description="Headers; `{env.NAME}` takes a secret from the environment."
    )
    body: CleanJson = Field(None, description="JSON to send; a text that is only `{name}` becomes that value.")

    @model_validator(mode="after")
    def _safe(self) -> Self:
        place = urlsplit(self.url)
        if place.scheme not in ("https", "http") or not place.hostname or "@" in place.netloc or "{" in place.netloc:
            raise ValueError("url must name its host itself, without a user: https://deploy.example/{service}")
        if place.fragment or _CONTROL.search(self.url) or " " in self.url:
            raise ValueError("url must have no blanks and no fragment")
        for name in self.headers:
            if not _TOKEN.fullmatch(name) or name.lower() in _NOT_SENT:
                raise ValueError(f"headers: {name!r} is not a header that can be given")
        for text in template.texts(self.body):
            template.names(text)
        return self

    @property
    def host(self) -> str:
        """The host that it goes to."""
        return urlsplit(self.url).hostname or ""

    def names(self) -> Iterator[str]:
        """The names that it has places for."""
        for text in (self.url, *self.headers.values(), *template.texts(self.body)):
            yield from template.names(text)

    def address(self, values: Values) -> str:
        """The address with its values, each of them inert; ValueError where one would lead elsewhere."""
        made = template.filled(self.url, values, lambda text: quote(text, safe=""))
        if any(part in (".", "..") for part in urlsplit(made).path.split("/")):
            raise ValueError("a part of the address would be '.' or '..'")
        return made

    def header_values(self, values: Values) -> dict[str, str]:
        """The headers with their values; ValueError where one would be more than a value."""
        made = {name: template.filled(text, values) for name, text in self.headers.items()}
        if any(_CONTROL.search(value) for value in made.values()):
            raise ValueError("a header must not hold newlines or control characters")
        return made


class Sandbox(Given):
    """What a command gets to see."""

    kind: Literal["bubblewrap", "none"] = Field(
        "bubblewrap", description="`none` runs it with the rights and the eyes of the server: say so only knowingly."
    )
    read_only: list[Path] = Field(default_factory=list, max_length=50, description="More paths that it may read.")
    writable: list[Path] = Field(default_factory=list, max_length=50, description="Paths that it may write.")
    network: bool = Field(False, description="Whether it may use the network.")
    memory_mb: int = Field(1_024, ge=16, le=1_000_000, description="Memory of each process.")
    processes: int = Field(64, ge=1, le=10_000, description="Processes and threads at once.")
    uid: int | None = Field(None, ge=1, le=2**31, description="Who runs it where the server is root; else nobody's.")


class Enrolment(Given):
    """A tool that agents may ask for: a command or an HTTP call, and how it may be run."""

    name: Clean = Field(
        min_length=1, max_length=64, description="What agents call it, such as deploy.staging: small letters, dots."
    )
    description: Clean = Field("", max_length=500, description="What it does, for agents and for whoever approves.")
    argv: list[Template] | None = Field(
        None, min_length=1, max_length=100, description="The program and its arguments; never read by a shell."
    )
    http: HttpCall | None = Field(None, description="The HTTP call, instead of a command.")
    parameters: Annotated[dict[Clean, CleanJson], AfterValidator(_schema)] = Field(
        default_factory=lambda: {"type": "object", "properties": {}, "additionalProperties": False},
        description="JSON Schema of the arguments; what it does not name is refused unless it says otherwise.",
    )
    directory: Path | None = Field(None, description="Where the command runs; a new empty folder when left out.")
    env: list[Variable] = Field(default_factory=list, max_length=50, description="Variables of ours that it gets.")
    timeout_s: int = Field(300, ge=1, le=86_400, description="Seconds until it is ended.")
    output_limit: int = Field(65_536, ge=1, le=1_048_576, description="Bytes of output that are kept.")
    sandbox: Sandbox = Field(default_factory=Sandbox, description="What a command gets to see.")
    effect: Effect = Field("mutate", description="read, mutate or destructive; this decides who may ask.")
    approval: Policy = Field("person", description="Who must agree; none is for what only reads.")
    approval_s: int = Field(86_400, ge=60, le=2_592_000, description="Seconds that it may wait for that.")
    queue_s: int = Field(900, ge=60, le=86_400, description="Seconds that a yes is good for, until its turn comes.")
    concurrency: int = Field(1, ge=1, le=100, description="How many may run at once.")
    window_s: int = Field(600, ge=1, le=86_400, description="Seconds in which the same request is the same run.")
    banks: list[KnownBank] = Field(
        default_factory=list, max_length=100, description="Only in these banks, else in all."
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not re.fullmatch(r"[a-z0-9]+([._-][a-z0-9]+)*", self.name):
            raise ValueError("name must be small letters and digits with '.', '_' or '-' between them")
        if (self.argv is None) == (self.http is None):
            raise ValueError("give either argv or http")
        if self.argv is not None and template.names(self.argv[0]):
            raise ValueError(
                "argv: the program itself cannot be an argument; "
                "give the program and each argument as a word of its own"
            )
        if self.approval == "none" and self.effect != "read":
            raise ValueError("approval: only what reads may run without anyone's agreement")
        self._check_places()
        return self

    def _check_places(self) -> None:
        """Every place of a template has a value whatever is asked, or a request could come out misshapen."""
        for name in self.places():
            if name.startswith(ENV):
                if self.http is None:
                    raise ValueError("argv: other users can see arguments; a command reads its environment itself")
                if name.removeprefix(ENV) not in self.env:
                    raise ValueError(f"{{{name}}} is not among env")
            elif name not in self.properties:
                raise ValueError(f"{{{name}}} is not among the properties of parameters")
            elif name not in self.required and "default" not in self.properties[name]:
                raise ValueError(f"{{{name}}} must be required by parameters, or have a default there")

    def places(self) -> list[str]:
        """The names that its templates have places for."""
        if self.http is not None:
            return list(self.http.names())
        return [name for word in self.argv or () for name in template.names(word)]

    @property
    def properties(self) -> dict[str, dict[str, object]]:
        """The arguments that it knows, each with its schema."""
        found = self.parameters.get("properties", {})
        if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
            raise ValueError("parameters: properties must be an object of schemas")
        return found

    @property
    def required(self) -> list[str]:
        """The arguments that must be given."""
        found = self.parameters.get("required", [])
        if not isinstance(found, list):
            raise ValueError("parameters: required must be a list of names")
        return found

    @property
    def version(self) -> str:
        """A hash over everything that it says."""
        return sha256(self.stored.encode()).hexdigest()

    @property
    def stored(self) -> str:
        """As it is written down."""
        return canonical(self.model_dump(mode="json"))

    @property
    def signature(self) -> str:
        """The arguments that it takes, and what it does, in a line."""
        words = [name if name in self.required else f"{name}?" for name in self.properties]
        return ", ".join(words)

    def values(self, arguments: Values) -> dict[str, object]:
        """Arguments with the defaults of those that were left out."""
        defaults = {name: one["default"] for name, one in self.properties.items() if "default" in one}
        return {**defaults, **arguments}

    def command(self, arguments: Values) -> list[str]:
        """The words of the command; ValueError where a value would be read as an option, or cannot be passed."""
        values, made, is_plain = self.values(arguments), list[str](), False
        for word in self.argv or ():
            text = template.filled(word, values)
            begun = template.begins_with_value(word)
            if begun and not is_plain and text.startswith("-") and not isinstance(values[begun], int | float):
                raise ValueError(f"`{begun}` must not begin with '-', or it would be an option of the program")
            if "\x00" in text or len(text) > LONGEST_WORD:
                raise ValueError(f"an argument must have no NUL, and at most {LONGEST_WORD:,} characters")
            is_plain = is_plain or word == "--"
            made.append(text)
        return made

    def told(self, arguments: Values) -> str:
        """What it would do with these arguments, for whoever decides; secrets of the environment stay names."""
        values = self.values(arguments)
        if self.http is None:
            return canonical(self.command(values))
        names = {name: f"{{{name}}}" for name in self.places() if name.startswith(ENV)}
        lines = [f"{self.http.method} {self.http.address(values)}"]
        lines += [f"{name}: {value}" for name, value in self.http.header_values({**values, **names}).items()]
        if self.http.body is not None:
            lines.append(canonical(template.filled_json(self.http.body, {**values, **names})))
        return "\n".join(lines)


def parsed(stored: str) -> Enrolment:
    """An enrolment as it was written down."""
    return Enrolment.model_validate_json(stored)
