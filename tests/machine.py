"""An application that a state machine drives, at a time of its own."""

import asyncio
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

from keepsake import dispatch
from keepsake.context import App, Ctx
from tests.auth.conftest import opened


class Machine(RuleBasedStateMachine):
    """The application with its loop; whoever inherits adds the rules."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        folder = tempfile.TemporaryDirectory()
        self.stack.callback(folder.cleanup)
        opening = self.stack.enter_async_context(opened(Path(folder.name)))
        self.now = 1_800_000_000_000_000
        self.app: App = replace(self.loop.run_until_complete(opening), now=lambda: self.now)

    def teardown(self) -> None:
        self.loop.run_until_complete(self.stack.aclose())
        self.loop.close()

    def run(self, ctx: Ctx, operation: str, /, **given: object) -> dict[str, Any]:
        """What an operation gives."""
        return self.loop.run_until_complete(dispatch.call(ctx, operation, given)).model_dump()
