"""Keepsake's own health: whether the store answers, work is not left lying, and there is room on the disk."""

import shutil
import time
from typing import TYPE_CHECKING

from pydantic import Field

from keepsake.context import App
from keepsake.core.clock import MINUTE, SECOND
from keepsake.core.errors import KeepsakeError
from keepsake.core.lazy import lazy
from keepsake.core.models import Result
from keepsake.store import jobs
from keepsake.store.engine import Tx

if TYPE_CHECKING:
    from keepsake.ops import doctor
else:
    doctor = lazy("keepsake.ops.doctor")

#: Work that waits longer than this waits for a worker that is not there.
LONGEST_WAIT = 15 * MINUTE


class Vital(Result):
    """One thing that Keepsake looks at in itself."""

    name: str = Field(description="database, queue or disk.")
    ok: bool = Field(description="Whether all is well.")
    told: str = Field(description="What was found.")


async def signs(app: App, org: int) -> list[Vital]:
    """Look at everything once."""
    return [*await _store(app, org), _disk(app)]


async def _store(app: App, org: int) -> list[Vital]:
    started = time.perf_counter()

    async def body(tx: Tx) -> int | None:
        return await jobs.oldest(tx, org)

    try:
        since = await app.store.read(org, body)
    except KeepsakeError:
        return [Vital(name="database", ok=False, told="does not answer")]
    taken = (time.perf_counter() - started) * 1_000
    waited = 0 if since is None else max(0, app.now() - since)
    queue = f"the oldest job has waited {waited // SECOND} s" if waited else "nothing waits"
    return [
        Vital(name="database", ok=True, told=f"answers in {taken:.1f} ms"),
        Vital(name="queue", ok=waited <= LONGEST_WAIT, told=queue),
    ]


def _disk(app: App) -> Vital:
    try:
        free = shutil.disk_usage(app.settings.data_dir).free
    except OSError:
        # A server over PostgreSQL need not have a folder.
        return Vital(name="disk", ok=bool(app.settings.database_url), told="there is no data folder")
    return Vital(name="disk", ok=free >= doctor.TOO_LITTLE, told=f"{free / (1 << 30):,.1f} GiB free")
