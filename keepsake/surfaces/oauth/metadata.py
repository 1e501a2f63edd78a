"""Discovery: what the authorization server can do, and who guards which endpoint."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from keepsake.auth import oauth as rules
from keepsake.core.errors import NotFound
from keepsake.settings import Settings
from keepsake.surfaces.oauth import places
from keepsake.surfaces.oauth.places import Map
from keepsake.surfaces.replies import as_json

NOTHING = "Nothing is served at this path. OAuth is offered once there are people: `keepsake user add`."
_HEADERS = {"Cache-Control": "public, max-age=300"}


def server(settings: Settings, whole: str) -> dict[str, object]:
    """RFC 8414."""
    methods = list(rules.METHODS)
    return {
        "issuer": whole,
        "authorization_endpoint": whole + places.AUTHORIZE,
        "token_endpoint": whole + places.TOKEN,
        "registration_endpoint": whole + places.REGISTER,
        "revocation_endpoint": whole + places.REVOKE,
        "introspection_endpoint": whole + places.INTROSPECT,
        "scopes_supported": sorted(rules.GRANTABLE),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "introspection_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": settings.client_documents,
    }


def resource(whole: str, path: str, issuers: Sequence[str]) -> dict[str, object]:
    """RFC 9728."""
    return {
        "resource": whole + path,
        "authorization_servers": list(issuers),
        "scopes_supported": sorted(rules.OFFERED),
        "bearer_methods_supported": ["header"],
        "resource_name": "Keepsake",
    }


def answer(settings: Settings, map: Map, request: Request, *, has_people: bool) -> Response:
    """Either document, at the root or under the path of an MCP endpoint; without people others give the tokens."""
    asked, whole = places.path(request), places.base(settings, request)
    kind = places.SERVER if asked.startswith(places.SERVER) else places.PROTECTED
    path = asked.removeprefix(kind)
    endpoint = "/" + request.path_params.get("path", "")
    if path.strip("/") and not map.is_endpoint(endpoint):
        raise NotFound("There is no MCP endpoint at this path.")
    others = map.issuers(settings, endpoint) if kind == places.PROTECTED else []
    issuers = [*([whole] if has_people else []), *others]
    if not issuers:
        raise NotFound(NOTHING)
    if kind == places.SERVER:
        return as_json(server(settings, whole), headers=_HEADERS)
    return as_json(resource(whole, path if path.strip("/") else "", issuers), headers=_HEADERS)


def challenge(settings: Settings, map: Map, request: Request) -> str:
    """The address of the document about whatever refused a request."""
    path = places.path(request)
    # A path that could end the quoted text around it is not repeated.
    is_endpoint = map.is_endpoint(request.scope["path"]) and '"' not in path and "\\" not in path
    return places.base(settings, request) + places.PROTECTED + (path if is_endpoint else "")
