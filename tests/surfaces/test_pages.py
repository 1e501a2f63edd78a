"""What pages are made of: words for times and numbers, drawings, files, and templates that hold to the policy."""

import ast
import gzip
import re
from hashlib import sha256
from pathlib import Path

import pytest

from keepsake.core import clock
from keepsake.core.clock import DAY, HOUR, MINUTE
from keepsake.surfaces.pages import charts, icons, rendering, static, words
from keepsake.surfaces.pages.charts import Also, Frame, Mark

ROOT = Path(__file__).parents[2]
FORBIDDEN = re.compile(r'style=|<style|<script(?! src=")|\son\w+=|hx-on|javascript:|\|\s*safe|Markup')
NASTY = '<script>"&'


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (0, "just now"),
        (-59_000_000, "just now"),
        (-4 * MINUTE, "4 minutes ago"),
        (-HOUR, "1 hour ago"),
        (-23 * HOUR, "23 hours ago"),
        (18 * MINUTE, "in 18 minutes"),
        (DAY - 1, "in 1 day"),
    ],
)
def test_a_time_near_is_said_by_its_distance(ahead: int, said: str) -> None:
    told = str(words.when(clock.now() + ahead))

    assert f'data-as="ago">{said}</time>' in told
    assert re.match(r'<time datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ" title="\d+ \w+ \d{4}, \d\d:\d\d UTC"', told)


def test_a_time_far_is_said_by_its_date() -> None:
    assert re.search(r'data-as="day">\w{3} \d\d:\d\d<', words.when(clock.now() - 3 * DAY))
    assert 'data-as="date">12 Nov 2025<' in words.when("2025-11-12T09:52:00Z")
    assert words.when(None) == "never"


def test_numbers_are_said_as_people_do() -> None:
    assert [words.number(18_204), words.number(1_940_000), words.number(0)] == ["18,204", "1.94 million", "0"]
    assert [words.count(1, "memory", "memories"), words.count(14, "memory", "memories")] == ["1 memory", "14 memories"]
    assert [words.size(412), words.size(4_100), words.spent(41), words.spent(1_200)] == [
        "412 bytes",
        "4.1 kB",
        "41 ms",
        "1.2 s",
    ]
    assert [words.listed([]), words.listed(["a"]), words.listed(["a", "b", "c"])] == ["nothing", "a", "a, b and c"]


def test_drawings_escape_what_they_are_told_and_draw_the_extremes() -> None:
    top, ticks = charts.scale(412)
    frame = Frame(NASTY, NASTY, top, ticks, [NASTY, "b"])
    plots = [
        charts.line_plot(frame, [[1, 412, 3]], Also((200, NASTY), [Mark(1, NASTY)], [(0, 10)], ([0, 0, 0], [9, 9, 9]))),
        charts.stack_plot(frame, [[1, 2], [3, 4]]),
        charts.bar_plot(frame, [[1, 2], [3, 4]], (5, NASTY)),
        charts.spark([], NASTY),
        charts.meter(2, NASTY),
        charts.progress(-1, NASTY),
        charts.heat([0, 1, 9], NASTY, [(0, NASTY)]),
        icons.icon("warn", NASTY),
        icons.kind(NASTY),
    ]

    assert (top, ticks) == (600, (0, 200, 400, 600))
    for plot in plots:
        assert NASTY not in plot and "<script" not in plot and "style=" not in plot
    thin = charts.thinned([0.0] * 5_000 + [9.0] + [1.0] * 5_000)
    assert (len(thin) <= 150, max(thin), min(thin)) == (True, 9.0, 0.0)


def _brought_in() -> list[tuple[str, str, str]]:
    """What the build brings in; the build's own tools need not be there to read it."""
    built = ast.parse((ROOT / "hatch_build.py").read_text())
    [files] = [
        one.value for one in built.body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "FILES"
    ]
    return list(ast.literal_eval(files))


def test_files_are_small_and_what_was_brought_in_is_what_we_know() -> None:
    css, js = (gzip.compress((static.HERE / name).read_bytes(), 9) for name in ("console.css", "console.js"))
    known = {ours: sha for ours, _, sha in _brought_in()}
    there = {name: sha256((static.HERE / name).read_bytes()).hexdigest() for name in known if static.exists(name)}

    assert (len(css) <= 10_000, len(js) <= 3_000) == (True, True)
    assert there == {name: known[name] for name in there}


def test_no_template_needs_what_the_policy_forbids_or_trusts_what_it_shows() -> None:
    wrong = [
        f"{file.name}: {found[0]}"
        for folder in rendering.FOLDERS
        for file in folder.glob("**/*.html")
        for found in re.finditer(
            r'style=|<style|<script(?! src=")|\son\w+=|hx-on|javascript:|\|\s*safe|Markup', file.read_text()
        )
    ]

    assert wrong == []


def test_a_line_breaks_where_nothing_was_measured_and_its_band_with_it() -> None:
    gap = float("nan")
    drawn = charts.line_plot(
        Frame("Latency", "Between 1 and 4 ms.", 4, (0, 4)),
        [[1, 2, gap, 4]],
        Also(normal=([0, gap, 1, 1], [2, gap, 3, 3])),
    )

    [band, line] = re.findall(r' d="([^"]+)"', str(drawn))
    assert line == "M0.0 75.0L33.3 50.0M100.0 0.0L100.0 0.0"
    assert band.count("Z") == 2
    assert "nan" not in drawn
