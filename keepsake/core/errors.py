"""The one family of errors; each knows how it looks to a client."""


class KeepsakeError(Exception):
    """Something the caller can act on; the message says what to do next."""

    code = "error"
    #: HTTP status over REST and, where `rpc` is set, over MCP.
    status = 400
    #: JSON-RPC code of a protocol failure; None makes it a result with `isError`.
    rpc: int | None = None


class BadInput(KeepsakeError):
    """The arguments do not fit the operation."""

    code = "bad_input"


class NotFound(KeepsakeError):
    """An id or name that this principal cannot see, or that does not exist."""

    code = "not_found"
    status = 404
    #: Operations that find what is there; a dialect calls them by its own names.
    see: tuple[str, ...] = ()

    def __init__(self, message: str, *see: str) -> None:
        super().__init__(f"{message} Use {' or '.join(see)}." if see else message)
        self.message, self.see = message, see


class Conflict(KeepsakeError):
    """What is stored has changed since the caller looked, or stands in the way."""

    code = "conflict"
    status = 409


class Unavailable(KeepsakeError):
    """A part that the operation needs does not answer."""

    code = "unavailable"
    status = 503


class Unauthenticated(KeepsakeError):
    """No credential, or one that is wrong, expired or revoked."""

    code = "unauthenticated"
    status = 401
    rpc = -32001


class UnknownTool(KeepsakeError):
    """A tool that is not there for this principal, for whatever reason."""

    code = "unknown_tool"
    status = 404
    rpc = -32602


class UnknownResource(KeepsakeError):
    """An address at which this principal finds nothing, for whatever reason."""

    code = "unknown_resource"
    status = 404
    rpc = -32602

    def __init__(self, uri: str) -> None:
        super().__init__("Resource not found. Use resources/list and resources/templates/list to see the addresses.")
        self.uri = uri


class Forbidden(KeepsakeError):
    """A scope, bank or destructive right is missing; the message begins with 403."""

    code = "forbidden"
    status = 403
    rpc = -32003

    def __init__(self, reason: str, scopes: frozenset[str] = frozenset()) -> None:
        super().__init__(f"403: {reason}")
        #: Everything that the call needs, where scopes are what is missing.
        self.scopes = scopes


class NoSession(KeepsakeError):
    """The session id is unknown, expired or another principal's."""

    code = "no_session"
    status = 404
    rpc = -32000


class NotBound(KeepsakeError):
    """The request works in a workspace, and none was chosen."""

    code = "not_bound"
    # The protocol answers this like any error of a call.
    status = 200
    rpc = -32600

    def __init__(self) -> None:
        super().__init__("Workspace not bound. Call xerotier.session.init or set X-Xerotier-Workspace header.")


class RateLimited(KeepsakeError):
    """Too many calls in this minute."""

    code = "rate_limited"
    status = 429
    rpc = -32005

    def __init__(self, limit: int, reset: int, wait: int) -> None:
        super().__init__(f"Over {limit} calls in this minute. Wait {wait} s and try again.")
        self.limit, self.reset, self.wait = limit, reset, wait


class Broken(KeepsakeError):
    """A fault of ours; the request id leads to it in the log."""

    code = "broken"
    status = 500
    rpc = -32603

    def __init__(self, request_id: str) -> None:
        super().__init__(f"Something went wrong in the server. The log has it under request id {request_id}.")


class WrongHost(KeepsakeError):
    """The server was addressed by a name that is not among its own."""

    code = "wrong_host"
    status = 421


class WrongOrigin(KeepsakeError):
    """A web page of another site sent the request."""

    code = "wrong_origin"
    status = 403


class Misconfigured(KeepsakeError):
    """A setting or the environment stops Keepsake from starting."""

    code = "misconfigured"


ALL: tuple[type[KeepsakeError], ...] = (
    BadInput,
    NotFound,
    Conflict,
    Unavailable,
    Unauthenticated,
    UnknownTool,
    UnknownResource,
    Forbidden,
    NoSession,
    NotBound,
    RateLimited,
    Broken,
    WrongHost,
    WrongOrigin,
    Misconfigured,
)
