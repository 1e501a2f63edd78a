"""Forgetting: the list of what goes, the receipt that stays; without the right, a request that others decide on."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import BadInput
from keepsake.core.models import Receipt
from keepsake.ops import approvals, memory, proposals, purging
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.memories_view import may
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import rendering, signin
from keepsake.surfaces.pages.forms import Fields
from keepsake.surfaces.pages.words import who

#: How a browser keeps the leave to make a change once others have agreed; it goes nowhere but to its own page.
COOKIE = "keepsake_ask"


def routes(console: Console) -> list[BaseRoute]:
    """The pages and forms of this group."""
    return [
        console.page("/b/{bank}/memories/forget", confirming),
        console.form("/b/{bank}/memories/forget", forget),
        console.page("/b/{bank}/memories/forgotten/{receipt}", forgotten),
        console.page("/b/{bank}/memories/asked/{proposal}", asked),
        console.form("/b/{bank}/memories/asked/{proposal}", apply),
    ]


def _may(visit: Visit) -> bool:
    return visit.ctx.principal.may_destroy and may(visit, "memory:delete")


async def confirming(visit: Visit) -> Response:
    """What would go, before it goes."""
    ids = visit.request.query_params.getlist("id")
    if not ids:
        raise BadInput("Choose the memories that are to be forgotten first.")
    losses = await visit.ask(purging.losses, ids=ids)
    values = {"losses": losses, "may_forget": _may(visit), "may_ask": may(visit, "memory:write")}
    return await visit.page("memory_forget.html", values, at="memories")


async def forget(visit: Visit, fields: Fields) -> Response:
    """Forget what was chosen, or ask for it; never more than was shown."""
    ids = list(fields.all("id"))
    losses = await visit.ask(purging.losses, ids=ids)
    if str(losses.memories) != fields.maybe("count"):
        return rendering.moved(visit.to("/b/{bank}/memories/forget", id=ids))
    if not _may(visit):
        return await _ask(visit, ids, fields.maybe("reason", 500) or "")
    one = len(ids) == 1
    gone = await (visit.ask(memory.forget, id=ids[0]) if one else visit.ask(purging.purge, ids=ids))
    return rendering.moved(visit.to(f"/b/{{bank}}/memories/forgotten/{gone.id}"))


async def forgotten(visit: Visit) -> Response:
    """The receipt."""
    receipt = await visit.ask(purging.receipt, id=visit.path("receipt"))
    return await visit.page("memory_forgotten.html", {"receipt": receipt, "by": who(receipt.principal)}, at="memories")


async def _ask(visit: Visit, ids: list[str], reason: str) -> Response:
    one = len(ids) == 1
    operation, carried = (memory.forget.id, {"id": ids[0]}) if one else (purging.purge.id, {"ids": ids})
    arguments = {"bank": visit.bank, **carried}
    made = await visit.ask(proposals.create, operation=operation, arguments=arguments, reason=reason)
    answer = rendering.moved(visit.to(f"/b/{{bank}}/memories/asked/{made.id}"))
    signin.keep(visit.ctx.app, visit.request, answer, f"{COOKIE}_{made.id}", made.token)
    return answer


async def asked(visit: Visit) -> Response:
    """How a request stands; once others have agreed, the button that makes the change."""
    one = await visit.ask(approvals.get, id=visit.path("proposal"))
    marked = [text[2:] for text in one.diff.splitlines() if text.startswith(("- content: ", "-   "))]
    said = "\n".join(text.removeprefix("content: ").strip() for text in marked)
    values = {"one": one, "said": said, "is_ready": one.state == "approved" and bool(_token(visit))}
    return await visit.page("memory_asked.html", values, at="memories")


def _token(visit: Visit) -> str:
    return signin.kept(visit.ctx.app, visit.request, f"{COOKIE}_{visit.path('proposal')}")


async def apply(visit: Visit, fields: Fields) -> Response:
    """Make the change that was agreed to."""
    if not _token(visit):
        raise BadInput("This browser did not ask for it. Whoever asked can make the change.")
    outcome = await visit.ask(proposals.apply, token=_token(visit))
    gone = Receipt.model_validate(outcome.model_dump())
    return rendering.moved(visit.to(f"/b/{{bank}}/memories/forgotten/{gone.id}"))
