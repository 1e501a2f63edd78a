"""How a check did over time, beside what is normal for it, on both stores."""

import pytest

from keepsake.context import App
from keepsake.core import clock
from keepsake.core.clock import DAY, HOUR, MINUTE
from keepsake.core.errors import Forbidden, NotFound
from keepsake.core.principal import Principal
from keepsake.ops import watching
from tests.ops.test_watching import put_samples
from tests.ops.watch import ORG, Run, app, run, running, time
from tests.ops.working import Clock

__all__ = ["app", "run", "time"]
pytestmark = pytest.mark.anyio


async def test_a_check_tells_its_latency_beside_what_is_normal_for_it(app: App, run: Run, time: Clock) -> None:
    await run("check.add", name="web", kind="dns", target="localhost", every_s=300)
    time.at = time.at // HOUR * HOUR + 30 * MINUTE
    await put_samples(app, 50_000, time.at - 2 * DAY, time.at - 40 * MINUTE, 5 * MINUTE)
    await watching.roll_up(app)
    await put_samples(app, 900_000, time.at - 40 * MINUTE, time.at, 5 * MINUTE, failing=2)

    told = await run("check.history", name="web", hours=12)
    points = told["points"]
    assert (told["check"]["name"], told["status"]["state"], told["step_s"]) == ("web", "new", 300)
    assert len(points) == 145
    assert points[0]["latency_ms"] == pytest.approx(50.3, abs=0.4)
    assert points[0]["low_ms"] < 50 < points[0]["high_ms"] < 60
    assert sum(point["failures"] for point in points) == 2
    assert told["uptime"] == pytest.approx(1 - 2 / sum(point["runs"] for point in points), abs=1e-4)
    assert points[-2]["slowest_ms"] >= 900 > points[-2]["high_ms"]
    assert "latency_ms" not in points[-1]

    month = await run("check.history", name="web", hours=720)
    assert month["step_s"] == 5 * 3_600
    assert {point["runs"] for point in month["points"]} >= {0, 60}
    assert not any("high_ms" in point or "slowest_ms" in point for point in month["points"])


async def test_the_last_day_of_every_check_is_told_at_once(app: App, run: Run, time: Clock) -> None:
    assert (await run("check.trends"))["trends"] == []
    await run("check.add", name="web", kind="dns", target="localhost", every_s=300)
    time.at = time.at // HOUR * HOUR + 30 * MINUTE
    await put_samples(app, 50_000, time.at - 3 * HOUR, time.at, 5 * MINUTE, failing=9)
    await watching.roll_up(app)

    [trend] = (await run("check.trends"))["trends"]
    assert trend["name"] == "web"
    assert trend["hours"][:20] == [None] * 20
    assert [round(value) for value in trend["hours"][-3:]] == [50, 50, 50]
    assert trend["uptime_30d"] == pytest.approx(0.75)
    await run("check.add", name="api", kind="heartbeat")
    assert [one["name"] for one in (await run("check.trends", offset=1))["trends"]] == ["web"]
    assert (await run("check.history", name="api"))["points"][0] == {"at": trend_start(time), "runs": 0, "failures": 0}


def trend_start(time: Clock) -> str:
    return clock.iso((time.at - DAY) // (10 * MINUTE) * (10 * MINUTE))


async def test_a_check_of_another_bank_is_unknown_and_who_may_not_watch_is_told_nothing(app: App, run: Run) -> None:
    await run("check.add", name="web", kind="dns", target="localhost")

    with pytest.raises(NotFound):
        await running(app, bank="other")("check.history", name="web")
    with pytest.raises(NotFound):
        await run("incident.get", id="12")
    stranger = Principal(org=ORG, name="key:ci", scopes=frozenset({"memory:read"}), key=7)
    for operation in ("check.history", "check.trends", "incident.get"):
        with pytest.raises(Forbidden):
            await running(app, stranger)(operation, name="web", id="1")
