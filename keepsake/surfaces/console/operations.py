"""Operations: work that takes longer than a request, followed while it goes on, cancelled or begun anew."""

from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from keepsake.ops import jobs
from keepsake.ops.jobs import JobStatus
from keepsake.surfaces.console.console import Console
from keepsake.surfaces.console.visit import PAGE, Visit
from keepsake.surfaces.pages import rendering
from keepsake.surfaces.pages.forms import Fields

#: What each kind of work is called, and what it does.
KINDS = {
    "embed": ("Sharpen meanings", "better vectors for what was remembered"),
    "enrich": ("Read memories", "facts, entities and times of what was remembered"),
    "model": ("Write a mental model", "its text from what is known"),
    "consolidate": ("Consolidate", "one insight from many memories"),
    "observe": ("Read what clients told", "observations and summaries of sessions"),
    "sync": ("Sync the repository", "commits, pull requests, issues and files"),
    "synthesise": ("Write the project’s profile", "six chapters from its repository"),
}
STATES = {
    "pending": ("waits", "", ""),
    "running": ("running", "accent", ""),
    "completed": ("done", "ok", "ok"),
    "failed": ("failed", "bad", "x"),
    "cancelled": ("cancelled", "", ""),
}
_WITHOUT_COUNTS = {
    "pending": "Not begun yet",
    "completed": "Nothing more to do",
    "cancelled": "Cancelled before it was done",
}
TABS = (("", "All"), ("running", "Running"), ("pending", "Waiting"), ("failed", "Failed"), ("completed", "Done"))


@dataclass(frozen=True, slots=True)
class Line:
    """An operation as the table shows it."""

    job: JobStatus
    name: str
    about: str
    stamp: tuple[str, str, str]

    @property
    def told(self) -> str:
        """How far it is, what it did, or what to do about it."""
        if self.job.state == "failed":
            return f"It failed {self.job.attempts} times, last of: {_reason(self.job)}"
        if self.job.state == "pending" and self.job.error:
            return f"Tried {self.job.attempts} times, and will be again. Last: {_reason(self.job)}"
        counts = [f"{name.replace('_', ' ')} {value:,}" for name, value in _counted(self.job) if value]
        if counts:
            return ", ".join(counts)
        return _WITHOUT_COUNTS.get(self.job.state, "")

    @property
    def action(self) -> str:
        """What can be done with it."""
        if self.job.state in ("pending", "running"):
            return "cancel"
        return "retry" if self.job.state in ("failed", "cancelled") else ""


def _reason(job: JobStatus) -> str:
    return (job.error or "").partition(": ")[2] or job.error or "an unknown fault"


def _counted(job: JobStatus) -> list[tuple[str, int]]:
    return [(name, value) for name, value in (job.result or {}).items() if isinstance(value, int)]


def routes(console: Console) -> list[BaseRoute]:
    """The pages of this group."""
    return [
        console.page("/b/{bank}/operations", show),
        console.form("/b/{bank}/operations/cancel", cancel),
        console.form("/b/{bank}/operations/retry", retry),
    ]


async def show(visit: Visit) -> Response:
    """The operations of a bank, newest first."""
    state = visit.query("state") if visit.query("state") in STATES else ""
    found = await visit.ask(jobs.list_, state=state or None, limit=PAGE)
    lines = [_line(job) for job in found.jobs]
    values = {
        "lines": lines,
        "state": state,
        "tabs_of": TABS,
        "is_live": visit.query("live") != "off",
        "is_busy": any(line.job.state in ("pending", "running") for line in lines),
        "may_change": visit.may("memory:write"),
    }
    if visit.is_part:
        return visit.bare("operations_rows.html", values)
    return await visit.page("operations.html", values, at="operations")


def _line(job: JobStatus) -> Line:
    name, about = KINDS.get(job.kind, (job.kind.replace("_", " ").capitalize(), ""))
    return Line(job, name, about, STATES[job.state])


async def cancel(visit: Visit, fields: Fields) -> Response:
    """End one that waits or runs."""
    await visit.ask(jobs.cancel, id=fields.one("id"))
    return rendering.moved(visit.to("operations", state=fields.maybe("state")))


async def retry(visit: Visit, fields: Fields) -> Response:
    """Begin one anew."""
    await visit.ask(jobs.retry, id=fields.one("id"))
    return rendering.moved(visit.to("operations", state=fields.maybe("state")))
