"""One's own account: password, browsers that are signed in, and what programs may do in one's name."""

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core.errors import BadInput, Forbidden, Unavailable
from keepsake.ops import account, grants, signing_in
from keepsake.ops.signing_in import Entered
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.joining import told
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.pages import forms, rendering, signin
from keepsake.surfaces.pages.forms import Fields

HERE = "/account"


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page(HERE, show),
        console.form("/account/password", change),
        console.form("/account/sessions/{id}/end", end),
        console.form("/account/grants/{id}/withdraw", withdraw),
    ]


async def show(visit: Visit) -> Response:
    """The account of whoever is signed in."""
    return await _shown(visit)


async def _shown(visit: Visit, problem: str = "") -> Response:
    if visit.signed is None:
        raise Forbidden("the local owner has no account. Create one under /console/setup.")
    values = {
        "sessions": (await visit.ask(account.sessions)).sessions,
        "current": visit.signed.session.sha256[: account.NAMED],
        "grants": (await visit.ask(grants.mine)).grants,
        "problem": problem,
        "is_changed": visit.query("changed") == "password",
    }
    return await visit.page("account.html", values, at="settings", status=400 if problem else 200)


async def change(visit: Visit, fields: Fields) -> Response:
    """Change the password, and begin a new session with it."""
    new = forms.typed(fields, "new")
    if new != forms.typed(fields, "again"):
        return await _shown(visit, "The two new passwords are not the same. Type both again.")
    try:
        made = await visit.ask(account.change_password, old=forms.typed(fields, "old"), new=new)
    except (BadInput, Unavailable) as error:
        wrong = "That is not the password that you have now."
        return await _shown(visit, wrong if "`old`" in str(error) else told(error))
    request, app = visit.request, visit.ctx.app
    address = request.client.host if request.client else ""
    entered = await signing_in.sign_in(app, made.name, new, address, False, signin.browser_of(request))
    if not isinstance(entered, Entered):
        return rendering.moved(signin.link(visit.to(HERE)))
    return await signin.entered(app, request, entered, visit.to(HERE, changed="password"))


async def end(visit: Visit, fields: Fields) -> Response:
    """Sign out elsewhere."""
    await visit.ask(account.end_session, id=visit.path("id"))
    return rendering.moved(visit.to(HERE))


async def withdraw(visit: Visit, fields: Fields) -> Response:
    """Take back what a program may do."""
    await visit.ask(grants.withdraw, id=visit.path("id"))
    return rendering.moved(visit.to(HERE))
