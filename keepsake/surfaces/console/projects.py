"""Projects: a repository for a bank to learn from, its sync as it goes on, its score, and the profile made of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup
from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.core import profile
from keepsake.core.errors import BadInput, Conflict, Forbidden, KeepsakeError, NotFound
from keepsake.ops import jobs, mental_models, overview, score, sync
from keepsake.ops.jobs import JobStatus
from keepsake.ops.mental_models import ModelText
from keepsake.ops.overview import Look
from keepsake.surfaces.console import home, scoring
from keepsake.surfaces.console import rendering as reading
from keepsake.surfaces.console.console import Console, reason
from keepsake.surfaces.console.scoring import Part
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import charts, forms, rendering, words
from keepsake.surfaces.pages.forms import Fields

#: How the last sync went, as a stamp says it.
STATES: Mapping[str, tuple[str, str, str]] = {
    "new": ("never synced", "", ""),
    "running": ("syncing", "accent", ""),
    "completed": ("in sync", "ok", "ok"),
    "partial": ("in sync, with gaps", "warn", "warn"),
    "failed": ("failed", "bad", "x"),
}
#: What a field's text may be refused for.
REFUSALS = (BadInput, Conflict, Forbidden, NotFound)
#: Jobs among which that of the repository is looked for.
JOBS = 100
_COUNTS = ("commits", "pulls", "issues", "releases", "tags", "files", "notes")
_CALLED = {"pulls": "pull request", "commits": "commit", "issues": "issue", "releases": "release", "tags": "tag"}


@dataclass(frozen=True, slots=True)
class Progress:
    """A sync, as far as it is."""

    job: JobStatus

    @property
    def is_busy(self) -> bool:
        """Whether it waits or runs."""
        return self.job.state in ("pending", "running")

    @property
    def told(self) -> str:
        """What it has done, in words."""
        result = self.job.result or {}
        doing, read, of = str(result.get("doing") or ""), _whole(result.get("read")), _whole(result.get("of"))
        parts = [f"{words.number(read)} of {words.number(of)} read"] if of else []
        counted = [(name, _whole(result.get(name))) for name in _COUNTS]
        parts += [words.count(held, _CALLED.get(name, name.removesuffix("s"))) for name, held in counted if held]
        if stored := _whole(result.get("stored")):
            parts.append(words.count(stored, "new memory", "new memories"))
        start = f"{doing[:1].upper()}{doing[1:]}: " if doing and self.is_busy and doing != "done" else ""
        if self.job.state == "pending" and not parts:
            return "It waits for its turn, which is a matter of seconds."
        said = start + ", ".join(parts) if parts else start.removesuffix(": ")
        return f"{said}. You can close this page." if self.is_busy and said else f"{said}." if said else ""

    @property
    def failed_of(self) -> str:
        """Why it ended, or was tried in vain."""
        return (self.job.error or "").partition(": ")[2] or (self.job.error or "")


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


@dataclass(frozen=True, slots=True)
class Line:
    """A project as the list shows it."""

    bank: Look
    parts: tuple[Part, ...]
    stamp: tuple[str, str, str]

    @property
    def advice(self) -> str:
        """What would raise its score most."""
        return scoring.advice(self.parts)


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter of a project's profile."""

    model: ModelText
    text: Markup


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page("/projects", listed),
        console.form("/projects", add),
        console.page("/b/{bank}/project", show),
        console.form("/b/{bank}/project/sync", start),
        console.form("/b/{bank}/project/cancel", cancel),
    ]


async def listed(visit: Visit) -> Response:
    """Every project, and a form to add one."""
    return await _listed(visit, {"repo": visit.query("repo")[:2_000], "name": visit.query("bank")[:100]})


async def _listed(visit: Visit, typed: Mapping[str, str], problem: str = "", status: int = 200) -> Response:
    offset = visit.number("offset")
    found = await visit.ask(overview.get, offset=offset)
    values = {
        "lines": [_line(bank) for bank in found.banks if bank.project],
        "bare": [bank.name for bank in found.banks if not bank.project],
        "earlier": visit.to("projects", offset=offset + PAGE) if offset + PAGE < found.total else "",
        "typed": typed,
        "problem": problem,
        "may_add": visit.may("bank:admin"),
        "hosts": visit.ctx.app.settings.sync_hosts,
    }
    return await visit.page("projects.html", values, at="projects", status=status)


def _line(bank: Look) -> Line:
    chunks = bank.weeks.get("chunk", [0])[-1]
    stamp = STATES[bank.project.state if bank.project else "new"]
    return Line(bank, tuple(scoring.parts(bank.breakdown, chunks)), stamp)


async def add(visit: Visit, fields: Fields) -> Response:
    """Let a bank learn from a repository; one that is not there yet is made."""
    typed = {"repo": forms.typed(fields, "repo").strip()[:2_000], "name": forms.typed(fields, "bank").strip()[:100]}
    name = typed["name"] or _named(typed["repo"])
    try:
        await _check_free(visit, name)
        asked = await visit.ask(sync.sync_bank, bank=name, repo=typed["repo"])
    except REFUSALS as error:
        if not visit.may("bank:admin"):
            raise
        return await _listed(visit, typed, _why(error), error.status)
    return rendering.moved(visit.to("/b/{bank}/project", asked.bank))


async def _check_free(visit: Visit, name: str) -> None:
    """Refuse a bank that learns from a repository already: another would take its place."""
    found = (await visit.ask(overview.get, banks=[name])).banks if name in visit.banks else []
    if found and found[0].project:
        raise Conflict(
            f"The bank {name} learns from {found[0].project.repository} already."
            " Name another bank, or give it another repository on its own page."
        )


def _why(error: KeepsakeError) -> str:
    """What to type instead."""
    return reason(error).removeprefix("Bank.sync: ")


def _named(repo: str) -> str:
    """What a bank is called after its repository."""
    last = repo.rstrip("/").replace("\\", "/").rpartition("/")[2].removesuffix(".git").lower()
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in last)[:60] or "project"


async def show(visit: Visit) -> Response:
    """One project."""
    return await _shown(visit)


async def _shown(visit: Visit, repo: str = "", problem: str = "", status: int = 200) -> Response:
    found = (await visit.ask(overview.get, banks=[visit.bank])).banks
    if not found:
        raise NotFound(f"No bank {visit.bank[:100]!r} that you may see. It may have been renamed or deleted.")
    bank, going = found[0], await _progress(visit)
    values: dict[str, object] = {
        "bank": bank,
        "progress": going,
        "drawn": charts.progress(going.job.progress, f"Sync of {bank.name}") if going else "",
        "is_live": visit.query("live") != "off" and not problem,
        "repo": repo,
        "problem": problem,
        "may_sync": visit.may("bank:admin"),
        "may_cancel": visit.may("memory:write"),
        "stamp": STATES[bank.project.state if bank.project else "new"],
    }
    if visit.is_part:
        part = visit.bare("project_sync.html", values)
        if going is None or not going.is_busy:
            # Score and profile are others once it is done.
            part.headers["HX-Refresh"] = "true"
        return part
    scored = await visit.ask(score.score)
    more = {
        "score": scored,
        "parts": scoring.parts(scored.breakdown, scored.memories),
        "kinds": home.kinds_of(bank),
        "plot": home.grown(bank),
        "chapters": await _chapters(visit) if bank.project else [],
    }
    return await visit.page("project.html", values | more, at="projects", status=status)


async def _progress(visit: Visit) -> Progress | None:
    """The sync of this bank that was asked for last."""
    found = await visit.ask(jobs.list_, limit=JOBS)
    return next((Progress(job) for job in found.jobs if job.kind == sync.JOB), None)


async def _chapters(visit: Visit) -> list[Chapter]:
    """The chapters that are written, in the order of a profile."""
    known = {model.id for model in (await visit.ask(mental_models.list_, tags=[profile.TAG])).models}
    made = [await visit.ask(mental_models.get, id=one.id) for one in profile.CHAPTERS if one.id in known]
    return [Chapter(model, reading.markdown(model.content, heading="h4")) for model in made if model.content]


async def start(visit: Visit, fields: Fields) -> Response:
    """Sync again, or for the first time."""
    repo = forms.typed(fields, "repo").strip()[:2_000]
    try:
        await visit.ask(sync.sync_bank, repo=repo or None)
    except REFUSALS as error:
        if not repo or not visit.may("bank:admin"):
            raise
        return await _shown(visit, repo, _why(error), error.status)
    return rendering.moved(visit.to("/b/{bank}/project"))


async def cancel(visit: Visit, fields: Fields) -> Response:
    """End a sync; what was read stays."""
    await visit.ask(jobs.cancel, id=fields.one("id", 64))
    return rendering.moved(visit.to("/b/{bank}/project"))
