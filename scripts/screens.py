"""Takes the console's pictures of the docs from a real server: scripts/screens.py docs/images

A bank is filled through the operations that agents use, someone proposes a deletion, and a real browser looks.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

from keepsake import dispatch
from keepsake.auth import verify
from keepsake.worker import step
from tests.auth.conftest import Served, served
from tests.console.conftest import CHROMIUM
from tests.console.knowing import do, knowing
from tests.console.looking import DESKTOP, PHONE, Looker, add_person, looking

#: What else the bank knows.
FACTS = (
    "Access tokens of atlas-api are signed with Ed25519 keys that live in the vault.",
    "Priya Nair reviews everything that touches billing.",
    "The staging cluster is rebuilt every Sunday night.",
    "Refresh tokens of the Auth Service rotate on every use; replaying an old one revokes the family.",
    "Webhooks are retried five times with growing pauses, then parked.",
    "Jonas Weber prefers small pull requests with one idea each.",
)
PICTURES = (
    ("home", "/console", DESKTOP, "light"),
    ("memories", "/console/b/default/memories?q=who+decided+that+refresh+tokens+rotate", DESKTOP, "light"),
    ("graph", "/console/b/default/graph?around={decision}&depth=2", DESKTOP, "dark"),
    ("decisions", "/console/b/default/decisions", DESKTOP, "light"),
    ("clients", "/console/settings/clients/claude-code?only=default&tier=all", DESKTOP, "light"),
    ("approve", "/console/approve/{proposal}", PHONE, "light"),
)


async def filled(server: Served) -> dict[str, str]:
    """What the pictures show, and the ids that their addresses need."""
    known = await knowing(server.app)
    stored = [(await do(server.app, "memory.retain", content=fact, tags=["atlas-api"]))["id"] for fact in FACTS]
    while await step(server.app, ["enrich"]):
        pass
    key = await do(server.app, "key.create", name="claude-code@atlas-api")
    agent = await verify.principal(server.app.store, server.app.settings, key["secret"], open_door=False)
    given = {
        "operation": "memory.forget",
        "arguments": {"id": stored[2]},
        "reason": "Staging moved to another provider; nothing there is rebuilt any more.",
    }
    asked = await dispatch.call(server.app.ctx(agent), "proposal.create", given)
    await add_person(server, "ada", "owner")
    return {"decision": known["new"], "proposal": str(asked.model_dump()["id"])}


async def taken(someone: Looker, folder: Path, ids: dict[str, str]) -> None:
    """Every picture."""
    await someone.enter()
    for name, path, width, theme in PICTURES:
        await someone.as_seen(width, theme)
        status = await someone.go(path.format(**ids))
        assert status == 200, f"{path}: {status}"
        await someone.page.wait_for_load_state("networkidle")
        await someone.page.screenshot(path=folder / f"console-{name}.png", full_page=width == PHONE)
        print(folder / f"console-{name}.png")


async def main(folder: Path) -> None:
    """Fill a server, look at it, and leave nothing behind."""
    with tempfile.TemporaryDirectory() as scratch:
        async with served(Path(scratch)) as server, async_playwright() as playwright:
            ids = await filled(server)
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            async with looking(browser, server) as someone:
                await taken(someone, folder, ids)
            await browser.close()


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    asyncio.run(main(Path(sys.argv[1])))
