"""The audit log: every change, who made it, and whether the log still says what it said."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import Forbidden
from keepsake.core.operation import AUDIT
from keepsake.ops import audit
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import rendering
from keepsake.surfaces.pages.forms import Fields


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page("/audit", show),
        console.page("/audit/heads.json", heads),
        console.form("/audit/verify", verify),
    ]


async def show(visit: Visit) -> Response:
    """The changes, newest first."""
    return await _page(visit)


async def _page(visit: Visit, verified: audit.Verified | None = None) -> Response:
    asked = {name: visit.query(name)[:200].strip() for name in ("within", "principal", "operation")}
    offset = visit.number("offset")
    if not visit.may(AUDIT) and not visit.may("admin"):
        raise Forbidden("the audit log is for its readers.", frozenset({AUDIT}))
    found = await visit.ask(
        audit.list_,
        only_bank=asked["within"] or None,
        principal=asked["principal"] or None,
        operation=asked["operation"] or None,
        limit=PAGE + 1,
        offset=offset,
    )
    values = {
        "entries": found.entries[:PAGE],
        "has_more": len(found.entries) > PAGE,
        "offset": offset,
        "asked": asked,
        "step": PAGE,
        "verified": verified,
    }
    return await visit.page("audit.html", values, at="audit")


async def verify(visit: Visit, _: Fields) -> Response:
    """Check every chain now, and say what came of it."""
    return await _page(visit, await visit.ask(audit.verify))


async def heads(visit: Visit) -> Response:
    """The signed heads of all chains as a file to be kept elsewhere."""
    signed = await visit.ask(audit.export)
    name = 'attachment; filename="keepsake-audit-heads.json"'
    headers = {**rendering.HEADERS, "Content-Disposition": name}
    return Response(signed.model_dump_json(indent=2), headers=headers, media_type="application/json")
