"""Getting an account: by a one-time link, or on the machine itself while nobody has one."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from keepsake.context import App
from keepsake.core import roles
from keepsake.core.errors import BadInput, Conflict, Forbidden, KeepsakeError
from keepsake.ops import invitations, signing_in
from keepsake.ops.invitations import Joining
from keepsake.surfaces.console import nav
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import Visit
from keepsake.surfaces.oauth import places
from keepsake.surfaces.pages import forms, rendering, signin
from keepsake.surfaces.pages.forms import Fields


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group; a link is opened by whoever has it, so nobody is asked who they are."""
    join = Join(console.app)
    return [
        console.page("/setup", offer),
        console.form("/setup", set_up),
        Route(nav.ROOT + "/join/{token}", join.show, methods=["GET"]),
        Route(nav.ROOT + "/join/{token}", join.take, methods=["POST"]),
    ]


async def offer(visit: Visit) -> Response:
    """The form for the first account, for the owner at this machine."""
    if not visit.me.is_local:
        raise Forbidden("you have an account already. Others are invited under Settings, People.")
    return await _offered(visit)


async def _offered(visit: Visit, name: str = "", problem: str = "") -> Response:
    values = {"name": name, "problem": problem}
    return visit.bare("setup.html", values, status=400 if problem else 200)


async def set_up(visit: Visit, fields: Fields) -> Response:
    """Make the first account, and sign its owner in."""
    if not visit.me.is_local:
        raise Forbidden("you have an account already. Others are invited under Settings, People.")
    app, name, password = visit.ctx.app, fields.maybe("name", 200) or "", forms.typed(fields, "password")
    if problem := _mismatch(fields):
        return await _offered(visit, name, problem)
    try:
        signing_in.check_password(name, password)
        made = await visit.ask(invitations.invite, name=name, role="owner", expires="5m")
    except (BadInput, Conflict) as error:
        return await _offered(visit, name, told(error))
    token = made.link.rpartition("/")[2]
    entered = await invitations.join(app, token, name, password, signin.browser_of(visit.request))
    return await signin.entered(app, visit.request, entered, nav.ROOT)


def _mismatch(fields: Fields) -> str:
    is_same = forms.typed(fields, "password") == forms.typed(fields, "again")
    return "" if is_same else "The two passwords are not the same. Type both again."


def told(error: KeepsakeError) -> str:
    """A mistake in a form, for the person who made it."""
    if "`password`" in str(error):
        return "Choose a password of 12 to 1,024 characters that is not your name."
    if "`name`" in str(error) or "name:" in str(error):
        return "Choose a name of printable characters without blanks, such as ines or ines@harbour.example."
    return str(error)


@dataclass(frozen=True, slots=True)
class Join:
    """The page that a one-time link leads to."""

    app: App

    async def show(self, request: Request) -> Response:
        """What the link is for, and the form."""
        try:
            joining = await invitations.opened(self.app, request.path_params["token"])
        except KeepsakeError as error:
            return self._gone(request, error)
        return self._form(request, joining)

    async def take(self, request: Request) -> Response:
        """Make the account, or set the password, and sign in."""
        token = request.path_params["token"]
        try:
            joining = await invitations.opened(self.app, token)
            fields = await forms.of_body(request)
            secret = signin.form_secret(self.app, request)
            forms.check_own(request, fields, secret, places.base(self.app.settings, request))
        except KeepsakeError as error:
            return self._gone(request, error)
        name, password = fields.maybe("name", 200) or "", forms.typed(fields, "password")
        if problem := _mismatch(fields):
            return self._form(request, joining, name, problem)
        try:
            entered = await invitations.join(self.app, token, name, password, signin.browser_of(request))
        except (BadInput, Conflict) as error:
            return self._form(request, joining, name, told(error))
        except KeepsakeError as error:
            return self._gone(request, error)
        return await signin.entered(self.app, request, entered, nav.ROOT)

    def _form(self, request: Request, joining: Joining, name: str = "", problem: str = "") -> Response:
        secret = signin.form_secret(self.app, request) or signin.new_secret()
        values = {
            "joining": joining,
            "means": roles.MEANING.get(joining.role, ""),  # type: ignore[call-overload]  # a stored role
            "name": name,
            "problem": problem,
            "csrf": forms.token(secret),
            "theme": rendering.theme(request),
            "here": request.url.path,
        }
        answer = rendering.page("join.html", values, 400 if problem else 200)
        signin.keep_secret(self.app, request, answer, secret)
        return answer

    def _gone(self, request: Request, error: KeepsakeError) -> Response:
        values = {"reason": str(error).removeprefix("403: "), "theme": rendering.theme(request)}
        return rendering.page("join_gone.html", values, error.status)
