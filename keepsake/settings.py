"""Every setting as one record: name, default, meaning, aliases. The reference page is made from these."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from keepsake.core import bank_name
from keepsake.core.errors import Misconfigured
from keepsake.core.lazy import lazy
from keepsake.core.values import endpoint as _endpoint
from keepsake.core.values import flag as _flag
from keepsake.core.values import folder
from keepsake.core.values import number as _number
from keepsake.core.values import one_of as _one_of
from keepsake.core.values import origin as _origin
from keepsake.core.values import places as _places
from keepsake.core.values import words as _words

if TYPE_CHECKING:
    from keepsake.core import issuers
else:
    issuers = lazy("keepsake.core.issuers")

__all__ = ["SETTINGS", "Settings", "folder", "load"]


def data_home() -> Path:
    """The folder that this system gives to a user's programs for their data."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "keepsake"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "keepsake"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "keepsake"


def _issuers(text: str) -> "tuple[issuers.Issuer, ...]":
    if text.lstrip().startswith(("[", "{")):
        return issuers.parsed(text)
    try:
        return issuers.parsed(folder(text).read_text("utf-8"))
    except (OSError, UnicodeError):
        raise ValueError("names a file that cannot be read") from None


Read = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that can be turned."""

    name: str
    default: object
    meaning: str
    read: Read = str
    #: Names under which the seeds' systems know it.
    aliases: tuple[str, ...] = ()
    secret: bool = False

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"KEEPSAKE_{self.name.upper()}"


SETTINGS: tuple[Setting, ...] = (
    Setting("host", "127.0.0.1", "Address that `keepsake serve` listens on."),
    Setting("port", 8888, "Port that `keepsake serve` listens on.", _number(0, 65_535)),
    Setting("data_dir", data_home(), "Folder of the SQLite database.", folder),
    Setting("database_url", "", "PostgreSQL to use instead of SQLite (postgresql://…).", secret=True),
    Setting("mcp_enabled", True, "Whether the MCP endpoints answer.", _flag, ("HINDSIGHT_API_MCP_ENABLED",)),
    Setting(
        "default_bank", "default", "Bank used when a request names none.", bank_name.checked, ("HINDSIGHT_MCP_BANK_ID",)
    ),
    Setting(
        "tenant_api_key",
        "",
        "A single key for everything: its holder is an owner who may also delete.",
        str,
        ("HINDSIGHT_API_TENANT_API_KEY",),
        secret=True,
    ),
    Setting(
        "tenant_extension",
        "",
        "Accepted for compatibility; only the ApiKeyTenantExtension exists here, and it needs `tenant_api_key`.",
        str,
        ("HINDSIGHT_API_TENANT_EXTENSION",),
    ),
    Setting(
        "rate_limit",
        60,
        "Calls that a key may make in a minute.",
        _number(1, 1_000_000),
        ("MCP_RATE_LIMIT_PER_MINUTE",),
    ),
    Setting(
        "session_ttl",
        600,
        "Seconds after which an idle MCP session ends, at every endpoint but xerotier's.",
        _number(1, 86_400),
    ),
    Setting("xerotier_enabled", True, "Whether the xerotier endpoint answers.", _flag, ("XEROTIER_MCP_ENABLED",)),
    Setting(
        "xerotier_session_ttl",
        600,
        "Seconds after which an idle MCP session of the xerotier endpoint ends.",
        _number(1, 86_400),
        ("XEROTIER_MCP_SESSION_TTL_SECONDS",),
    ),
    Setting(
        "xerotier_transport",
        "streamable",
        "`legacy` makes the xerotier endpoint answer in plain JSON alone, for clients that take no stream.",
        _one_of("streamable", "legacy"),
        ("XEROTIER_MCP_TRANSPORT",),
    ),
    Setting("body_limit", 4 * 1024 * 1024, "Largest request body in bytes.", _number(1024, 1 << 30)),
    Setting(
        "allowed_hosts",
        (),
        "Names under which the server may be addressed besides loopback and the address it is bound to.",
        _words,
    ),
    Setting(
        "public_url",
        "",
        "Address under which people and clients reach the server, such as https://memory.example; needed behind a proxy"
        " that ends TLS.",
        _origin,
    ),
    Setting(
        "client_documents",
        True,
        "Whether OAuth clients may be known by a metadata document, which is then read over https from their host.",
        _flag,
    ),
    Setting("allowed_origins", (), "Web origins whose pages may call the server, such as https://app.example.", _words),
    Setting("worker", True, "Whether this process also does background work.", _flag),
    Setting("shutdown_seconds", 10, "How long open requests may take to end at shutdown.", _number(0, 600)),
    Setting("log_level", "info", "Least level that is logged.", _one_of("debug", "info", "warning", "error")),
    Setting(
        "log_format", "auto", "`json`, `pretty`, or `auto`: pretty on a terminal.", _one_of("auto", "json", "pretty")
    ),
    Setting(
        "llm_base_url",
        "",
        "Address of an OpenAI-compatible endpoint such as http://127.0.0.1:11434/v1; without one no model is asked.",
        _endpoint,
    ),
    Setting("llm_api_key", "", "The key that the language model's endpoint wants.", secret=True),
    Setting("llm_model", "", "Name of the language model to ask."),
    Setting(
        "llm_timeout", 60, "Seconds that the language model may take for an answer, retries included.", _number(1, 3600)
    ),
    Setting(
        "llm_daily_tokens",
        200_000,
        "Tokens that the background may spend in a day (UTC) for an org; 0 lets it spend none.",
        _number(0, 10**12),
    ),
    Setting(
        "embedding_base_url",
        "",
        "Address of an OpenAI-compatible endpoint to embed with; without one the packaged model is used.",
        _endpoint,
    ),
    Setting("embedding_api_key", "", "The key that the embedding endpoint wants.", secret=True),
    Setting("embedding_model", "", "Name of the embedding model to ask; another name embeds every memory anew."),
    Setting(
        "embedding_dimensions",
        0,
        "Length of the vectors to ask for, where the model lets one choose; 0 leaves it to the model.",
        _number(0, 16_000),
    ),
    Setting(
        "embedding_timeout",
        10,
        "Seconds that the embedding endpoint may take for a question; the background waits six times as long.",
        _number(1, 3600),
    ),
    Setting(
        "rerank_base_url",
        "",
        "Address whose /rerank judges what a search found, as Cohere, Jina or TEI offer it; without one none is asked.",
        _endpoint,
    ),
    Setting("rerank_api_key", "", "The key that the reranker's endpoint wants.", secret=True),
    Setting("rerank_model", "", "Name of the reranker, where its endpoint wants one."),
    Setting(
        "rerank_timeout", 10, "Seconds that the reranker may take; after that a search does without.", _number(1, 3600)
    ),
    Setting(
        "weekly_token_limit",
        500_000,
        "Tokens that one principal may spend in a week; it begins anew on Monday at 00:00 UTC.",
        _number(0, 10**12),
        ("WEEKLY_TOKEN_LIMIT",),
    ),
    Setting(
        "github_token",
        "",
        "The token that GitHub is asked with; without one only public repositories that were given by their address"
        " are read there, slowly.",
        secret=True,
    ),
    Setting(
        "github_url",
        "https://api.github.com",
        "Address of GitHub's REST API; GitHub Enterprise has it at https://HOST/api/v3.",
        _endpoint,
    ),
    Setting(
        "webhook_secret",
        "",
        "What GitHub signs its webhooks with; without it `/webhooks/github` does not exist.",
        secret=True,
    ),
    Setting(
        "jwt_issuers",
        (),
        "Whose bearer tokens are taken at `/api/mcp` besides keys: a JSON list, or the path of a file that holds it.",
        _issuers,
        secret=True,
    ),
    Setting(
        "sync_hosts",
        ("github.com",),
        "Hosts whose repositories whoever may sync may read over https; the owner of this machine may name any host.",
        _words,
    ),
    Setting(
        "sync_repo_limit", 2_000, "Megabytes that the copy of a repository elsewhere may take.", _number(1, 1_000_000)
    ),
    Setting(
        "sync_file_limit", 512, "Kilobytes of the largest document of a repository that is read.", _number(1, 16_384)
    ),
    Setting(
        "exec_hosts",
        (),
        "Hosts that enrolled HTTP calls may reach although they are private or without TLS.",
        _words,
    ),
    Setting(
        "approval_webhook",
        "",
        "Address that is told when a command waits for approval; signed with KEEPSAKE_APPROVAL_SECRET.",
        _endpoint,
    ),
    Setting("approval_secret", "", "What calls of KEEPSAKE_APPROVAL_WEBHOOK are signed with.", secret=True),
    Setting(
        "fetch_allow",
        (),
        "Hosts such as wiki.internal or 127.0.0.1:8080 that `web.fetch` and `web.inspect` may read although their"
        " address is private; with a port, at that port.",
        _places,
    ),
    Setting(
        "search_backend",
        "",
        "Who is asked by `web.search`: `searxng`, `brave` or `tavily`; without one nothing is searched on the web.",
        _one_of("searxng", "brave", "tavily"),
    ),
    Setting(
        "search_url",
        "",
        "Address of the search backend; needed for SearXNG, such as http://127.0.0.1:8080, and known for the others.",
        _endpoint,
    ),
    Setting("search_api_key", "", "The key that the search backend wants.", secret=True),
    Setting("url", "", "A running server that commands use instead of opening the store."),
    Setting("api_key", "", "The key that commands and stdio use.", secret=True),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective values; read once and passed on."""

    host: str
    port: int
    data_dir: Path
    database_url: str
    mcp_enabled: bool
    default_bank: str
    tenant_api_key: str
    tenant_extension: str
    rate_limit: int
    session_ttl: int
    xerotier_enabled: bool
    xerotier_session_ttl: int
    xerotier_transport: str
    body_limit: int
    allowed_hosts: tuple[str, ...]
    public_url: str
    client_documents: bool
    allowed_origins: tuple[str, ...]
    worker: bool
    shutdown_seconds: int
    log_level: str
    log_format: str
    llm_base_url: str
    llm_api_key: str = field(repr=False)
    llm_model: str
    llm_timeout: int
    llm_daily_tokens: int
    embedding_base_url: str
    embedding_api_key: str = field(repr=False)
    embedding_model: str
    embedding_dimensions: int
    embedding_timeout: int
    rerank_base_url: str
    rerank_api_key: str = field(repr=False)
    rerank_model: str
    rerank_timeout: int
    weekly_token_limit: int
    github_token: str = field(repr=False)
    github_url: str
    webhook_secret: str = field(repr=False)
    jwt_issuers: "tuple[issuers.Issuer, ...]" = field(repr=False)
    sync_hosts: tuple[str, ...]
    sync_repo_limit: int
    sync_file_limit: int
    exec_hosts: tuple[str, ...]
    approval_webhook: str
    approval_secret: str = field(repr=False)
    fetch_allow: tuple[str, ...]
    search_backend: str
    search_url: str
    search_api_key: str = field(repr=False)
    url: str
    api_key: str
    #: Where each value came from: `default`, `flag`, or the variable's name.
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)


def load(environment: Mapping[str, str] | None = None, **flags: object) -> Settings:
    """Read the settings: flags first, then our variables, then the seeds' names, then defaults."""
    environment = os.environ if environment is None else environment
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for setting in SETTINGS:
        given = flags.get(setting.name)
        values[setting.name], origins[setting.name] = (
            (given, "flag") if given is not None else _from_environment(setting, environment)
        )
    settings = Settings(**values, origins=origins)  # type: ignore[arg-type]  # each reader gives its field's type
    _check(settings)
    return settings


def _from_environment(setting: Setting, environment: Mapping[str, str]) -> tuple[object, str]:
    for variable in (setting.variable, *setting.aliases):
        if environment.get(variable, "") == "":
            continue
        try:
            return setting.read(environment[variable]), variable
        except ValueError as error:
            shown = "its value" if setting.secret else repr(environment[variable])
            raise Misconfigured(f"{variable}: {shown} is not usable; it {error}.") from error
    return setting.default, "default"


def _check(settings: Settings) -> None:
    if settings.tenant_extension and not settings.tenant_extension.endswith("ApiKeyTenantExtension"):
        raise Misconfigured(
            "HINDSIGHT_API_TENANT_EXTENSION: only …tenant:ApiKeyTenantExtension is supported. Unset it, and make keys"
            " with `keepsake key create`."
        )
    if settings.tenant_extension and not settings.tenant_api_key:
        raise Misconfigured("HINDSIGHT_API_TENANT_EXTENSION is set, so HINDSIGHT_API_TENANT_API_KEY must be too.")
    if bool(settings.llm_base_url) != bool(settings.llm_model):
        raise Misconfigured(
            "KEEPSAKE_LLM_BASE_URL and KEEPSAKE_LLM_MODEL belong together: set both to ask a model, or neither."
        )
    if bool(settings.embedding_base_url) != bool(settings.embedding_model):
        raise Misconfigured(
            "KEEPSAKE_EMBEDDING_BASE_URL and KEEPSAKE_EMBEDDING_MODEL belong together: set both to embed with a model"
            " of your own, or neither."
        )
    if bool(settings.approval_webhook) != bool(settings.approval_secret):
        raise Misconfigured(
            "KEEPSAKE_APPROVAL_WEBHOOK and KEEPSAKE_APPROVAL_SECRET belong together: whoever is told must know that it"
            " was us."
        )
    if settings.rerank_model and not settings.rerank_base_url:
        raise Misconfigured("KEEPSAKE_RERANK_MODEL is set, so KEEPSAKE_RERANK_BASE_URL must be too.")
    needed = {"searxng": "search_url", "brave": "search_api_key", "tavily": "search_api_key"}
    if (wanted := needed.get(settings.search_backend)) and not getattr(settings, wanted):
        raise Misconfigured(f"KEEPSAKE_SEARCH_BACKEND is set, so KEEPSAKE_{wanted.upper()} must be too.")
    if settings.search_url and not settings.search_backend:
        raise Misconfigured("KEEPSAKE_SEARCH_URL is set, so KEEPSAKE_SEARCH_BACKEND must be too.")
