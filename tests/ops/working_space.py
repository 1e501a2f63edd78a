"""What tests of decisions, milestones, the graph and the brief share: one bank, and its operations by id."""

from collections.abc import Awaitable, Callable
from typing import Any

from keepsake import dispatch
from keepsake.context import App
from keepsake.core.principal import local_owner

Do = Callable[..., Awaitable[dict[str, Any]]]


def doing(app: App, bank: str = "shop") -> Do:
    """Run operations in a bank as the local owner; gives their results as JSON."""

    async def done(operation: str, /, **arguments: Any) -> dict[str, Any]:
        result = await dispatch.call(app.ctx(local_owner(), bank=bank), operation, arguments)
        return result.model_dump(mode="json")

    return done


async def decided(do: Do, title: str, **arguments: Any) -> str:
    """Record a decision; gives its id."""
    return str((await do("decision.record", title=title, **arguments))["decision"]["id"])


async def reached(do: Do, title: str, **arguments: Any) -> str:
    """Record a milestone; gives its id."""
    return str((await do("milestone.record", title=title, **arguments))["milestone"]["id"])
