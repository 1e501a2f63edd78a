"""Pictures of numbers, drawn on the server as SVG: text keeps its size at every width, only the data stretches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from math import isnan

from markupsafe import Markup, escape

Point = tuple[float, float]
Values = Sequence[float]
#: Room above the plot for a label, and below it for the time.
TOP, BELOW = 14, 22
#: What each bar of a result tells, always in this order.
SIGNALS = ("words", "meaning", "links", "time")


@dataclass(frozen=True, slots=True)
class Frame:
    """What all plots have in common."""

    #: What is shown, and the finding in words, with figures.
    title: str
    finding: str
    #: The upper end of the y axis, and where it is marked.
    top: float
    ticks: Sequence[float]
    #: Below the plot, first at the start, last at the end.
    labels: Sequence[str] = ()
    height: int = 176

    @property
    def tall(self) -> int:
        """The height of the data."""
        return self.height - TOP - BELOW

    def y(self, value: float) -> float:
        """Where a value is, in px from the top."""
        return TOP + self.tall * (1 - value / self.top)


@dataclass(frozen=True, slots=True)
class Mark:
    """An anomaly: a ring on the first series, with its label."""

    index: int
    text: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Also:
    """What a line plot may show beside its lines."""

    #: A dashed limit with its label.
    limit: tuple[float, str] | None = None
    marks: Sequence[Mark] = ()
    #: Times of incidents, each from and to in percent of the width.
    incidents: Sequence[tuple[float, float]] = ()
    #: The normal range: its lower and upper values.
    normal: tuple[Values, Values] | None = None


def scale(highest: float) -> tuple[float, tuple[float, ...]]:
    """A round upper end for an axis, with its ticks."""
    if highest <= 0:
        return 1, (0, 1)
    step = 10 ** (len(str(int(highest))) - 1) if highest >= 1 else 0.1
    for factor in (0.25, 0.5, 1, 2, 2.5):
        if highest <= 4 * step * factor and (step * factor >= 1 or highest < 1):
            each = step * factor
            count = -(-highest // each)
            ticks = tuple(round(each * tick, 2) for tick in range(int(count) + 1))
            return ticks[-1], ticks
    return step * 10, (0, step * 5, step * 10)


def thinned(values: Values, most: int = 150) -> list[float]:
    """At most so many points: the least and the greatest of each stretch stay."""
    if len(values) <= most:
        return list(values)
    stretch = len(values) / (most // 2)
    kept: list[float] = []
    for turn in range(most // 2):
        part = list(values[int(turn * stretch) : int((turn + 1) * stretch)])
        low, high = part.index(min(part)), part.index(max(part))
        kept += [part[index] for index in sorted((low, high))]
    return kept


def _points(values: Values, top: float) -> list[Point]:
    last = max(len(values) - 1, 1)
    return [(100 * index / last, 100 - 100 * value / top) for index, value in enumerate(values)]


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """The points without a break between them; a value that is not a number is one."""
    return [list(run) for is_gap, run in groupby(points, key=lambda point: isnan(point[1])) if not is_gap]


def _line(points: Sequence[Point]) -> str:
    # A point alone is drawn to itself, or it would not be seen.
    runs = [run if len(run) > 1 else run * 2 for run in _runs(points)]
    return "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run) for run in runs)


def _area(upper: Sequence[Point], lower: Sequence[Point] = ((0, 100), (100, 100))) -> str:
    return f"{_line(upper)}L{_line(list(reversed(lower)))[1:]}Z"


def _label(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


def _id(kind: str, *texts: str) -> str:
    return f"{kind}{sha256(chr(0).join(texts).encode()).hexdigest()[:8]}"


def _framed(frame: Frame, body: str, over: str = "") -> Markup:
    """Grid and text in px and percent, data in an inner picture that stretches."""
    lines = "".join(
        f'<line class="{"g" if value else "base"}" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
        for value, y in ((value, frame.y(value)) for value in frame.ticks)
    )
    gutter = 8 + 7 * max((len(_label(value)) for value in frame.ticks), default=1)
    axis = "".join(
        f'<text x="{gutter}" y="{frame.y(value) + 4:.1f}" text-anchor="end">{_label(value)}</text>'
        for value in frame.ticks
    )
    title, desc = _id("t", frame.title, frame.finding), _id("d", frame.title, frame.finding)
    return Markup(
        f'<div class="plot-row"><svg class="yaxis" width="{gutter}" height="{frame.height}" aria-hidden="true">{axis}'
        f'</svg><svg class="plot" height="{frame.height}" role="img" aria-labelledby="{title} {desc}">'
        f'<title id="{title}">{escape(frame.title)}</title><desc id="{desc}">{escape(frame.finding)}</desc>{lines}'
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" y="{TOP}" width="100%" height="{frame.tall}">{body}'
        f"</svg>{over}{_times(frame)}</svg></div>"
    )


def _times(frame: Frame) -> str:
    last = len(frame.labels) - 1
    told = []
    for index, text in enumerate(frame.labels if last > 0 else ()):
        anchor = "start" if index == 0 else "end" if index == last else "middle"
        alt = ' class="alt"' if last > 3 and index % 2 else ""
        place = f'x="{100 * index / last:.1f}%" y="{frame.height - 4}" text-anchor="{anchor}"'
        told.append(f"<text{alt} {place}>{escape(text)}</text>")
    return "".join(told)


def _limit(frame: Frame, limit: tuple[float, str] | None) -> str:
    if limit is None:
        return ""
    y = frame.y(limit[0])
    line = f'<line class="limit" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'{line}<text class="halo" x="0" y="{y - 5:.1f}">{escape(limit[1])}</text>'


def line_plot(frame: Frame, series: Sequence[Values], also: Also | None = None, is_filled: bool = False) -> Markup:
    """Lines over time, at most four; a value that is not a number leaves a gap."""
    also = also or Also()
    body = "".join(
        f'<rect class="band" x="{start:.1f}" y="0" width="{end - start:.1f}" height="100"/>'
        for start, end in also.incidents
    )
    if also.normal:
        low, high = (_runs(_points(values, frame.top)) for values in also.normal)
        drawn = "".join(_area(upper, lower) for upper, lower in zip(high, low, strict=True))
        body += f'<path class="ar soft s1" d="{drawn}"/>'
    for number, values in enumerate(series, 1):
        points = _points(values, frame.top)
        if is_filled and number == 1:
            body += f'<path class="ar soft s1" d="{_area(points)}"/>'
        body += f'<path class="ln s{number}" d="{_line(points)}"/>'
    marks = "".join(_mark(frame, series[0], mark) for mark in also.marks)
    return _framed(frame, body, _limit(frame, also.limit) + marks)


def _mark(frame: Frame, values: Values, mark: Mark) -> str:
    x, y = 100 * mark.index / max(len(values) - 1, 1), frame.y(values[mark.index])
    aside = {"start": 9, "end": -9}.get(mark.anchor, 0)
    label = f'x="{x:.1f}%" dx="{aside}" y="{y + 4 if aside else y - 11:.1f}" text-anchor="{mark.anchor}"'
    ring = f'<circle class="dot" cx="{x:.1f}%" cy="{y:.1f}" r="4.5"/>'
    return f'{ring}<text class="b halo" {label}>{escape(mark.text)}</text>'


def stack_plot(frame: Frame, series: Sequence[Values]) -> Markup:
    """Parts of a whole over time, the largest at the bottom."""
    base, body = [0.0] * len(series[0]), ""
    for number, values in enumerate(series, 1):
        upper = [below + value for below, value in zip(base, values, strict=True)]
        points = _points(upper, frame.top)
        body += f'<path class="ar s{number}" d="{_area(points, _points(base, frame.top))}"/>'
        body += f'<path class="ln solid s{number}" d="{_line(points)}"/>'
        base = upper
    return _framed(frame, body)


def bar_plot(frame: Frame, series: Sequence[Values], limit: tuple[float, str] | None = None) -> Markup:
    """Bars over time, left to right, two series at most; a label stands below each."""
    wide = 100 / max(len(series[0]), 1)
    each, body = wide * 0.62 / len(series), ""
    for number, values in enumerate(series):
        for index, value in enumerate(values):
            tall = 100 * value / frame.top
            x = index * wide + wide * 0.19 + number * each
            size = f'width="{each * 0.92:.2f}" height="{tall:.2f}"'
            body += f'<rect class="f{number + 1}" x="{x:.2f}" y="{100 - tall:.2f}" {size}/>'
    below = "".join(
        f'<text x="{index * wide + wide / 2:.1f}%" y="{frame.height - 4}" text-anchor="middle">{escape(text)}</text>'
        for index, text in enumerate(frame.labels)
    )
    bare = Frame(frame.title, frame.finding, frame.top, frame.ticks, (), frame.height)
    return _framed(bare, body, _limit(frame, limit) + below)


def spark(values: Values, label: str, top: float | None = None) -> Markup:
    """A line of 96 by 24 px; the label says the trend."""
    points = _points(values or (0, 0), top or max(values, default=0) or 1)
    inner = 'viewBox="0 0 100 100" preserveAspectRatio="none" x="1" y="3" width="92" height="18"'
    return Markup(
        f'<svg class="spark" role="img" aria-label="{escape(label)}"><svg {inner}>'
        f'<path class="ar soft s1" d="{_area(points)}"/><path class="ln s1" d="{_line(points)}"/></svg>'
        f'<circle class="dot end" cx="93" cy="{3 + points[-1][1] * 0.18:.1f}" r="3.5"/></svg>'
    )


def bars(*values: float, top: float = 1.0) -> Markup:
    """The signals of a result, beside it; `top` is what fills a bar."""
    label = ", ".join(f"{name} {value:.2f}" for name, value in zip(SIGNALS, values, strict=False))
    drawn = "".join(
        f'<rect x="{index * 8}" y="0" width="6" height="18" rx="1"/>'
        f'<rect class="v" x="{index * 8}" y="{18 - tall:.1f}" width="6" height="{tall:.1f}" rx="1"/>'
        for index, value in enumerate(values)
        for tall in (max(1.0, 18 * min(value / top, 1)),)
    )
    told = f'role="img" aria-label="Signals: {label}"><title>{label}</title>'
    return Markup(f'<svg class="bars" width="{8 * len(values) - 2}" height="18" {told}{drawn}</svg>')


def hbar(share: float, kind: str = "v") -> Markup:
    """A bar beside its number; `p` draws a prior."""
    return Markup(f'<svg aria-hidden="true">{_bar(share, kind, 6)}</svg>')


def meter(share: float, label: str, kind: str = "v") -> Markup:
    """How much of something is used."""
    return Markup(f'<svg class="meter" role="img" aria-label="{escape(label)}">{_bar(share, kind, 6)}</svg>')


def progress(share: float, label: str) -> Markup:
    """How far something is."""
    now = f'aria-valuenow="{round(100 * share)}" aria-valuemin="0" aria-valuemax="100"'
    told = f'class="prog" role="progressbar" aria-label="{escape(label)}" {now}'
    return Markup(f"<svg {told}>{_bar(share, 'v', 4)}</svg>")


def _bar(share: float, kind: str, tall: int) -> str:
    size = f'height="{tall}" rx="{tall // 2}"'
    width = 100 * min(max(share, 0), 1)
    return f'<rect width="100%" {size}/><rect class="{kind}" width="{width:.1f}%" {size}/>'


def key(number: int, is_area: bool = False) -> Markup:
    """A series in the key of a plot."""
    if is_area:
        return Markup(f'<svg aria-hidden="true"><rect class="f{number}" y="0" width="10" height="8" rx="1"/></svg>')
    return Markup(f'<svg aria-hidden="true"><line class="ln s{number}" x1="0" x2="14" y1="4" y2="4"/></svg>')


def heat(days: Sequence[int], label: str, months: Sequence[tuple[int, str]] = ()) -> Markup:
    """One square a day in columns of weeks, Monday first; `months` are columns and their names."""
    most, weeks = max(days, default=0) or 1, -(-len(days) // 7)
    drawn = []
    for index, value in enumerate(days):
        shade = min(4, -(-4 * value // most))
        place = f'x="{index // 7 * 16}" y="{index % 7 * 16 + 18}" width="13" height="13" rx="2"'
        drawn.append(f'<rect {place} class="h{shade}"/>' if shade else f"<rect {place}/>")
    drawn += [f'<text x="{week * 16}" y="10">{escape(name)}</text>' for week, name in months]
    size = f'width="{weeks * 16 + 12}" height="127" viewBox="0 0 {weeks * 16 + 12} 127"'
    return Markup(f'<svg class="heat" {size} role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>')


DRAWN: Mapping[str, Callable[..., Markup]] = {
    "spark": spark,
    "bars": bars,
    "hbar": hbar,
    "meter": meter,
    "progress": progress,
    "key": key,
    "heat": heat,
}
