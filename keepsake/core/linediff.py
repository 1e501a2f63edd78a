"""What changed between two texts, line by line: the shortest way from one to the other, while that is cheap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: Lines around a change.
CONTEXT = 3
#: Changes up to which the shortest way is looked for, and steps that this may take; beyond, all between goes and comes.
MOST_CHANGES, MOST_STEPS = 800, 2_000_000


@dataclass(frozen=True, slots=True)
class Change:
    """Lines `old[a:b]` that became `new[c:d]`."""

    a: int
    b: int
    c: int
    d: int


def unified(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """The lines of a unified diff, without the two that name the files."""
    for hunk in _hunks(changes(old, new)):
        first, last = hunk[0], hunk[-1]
        a, c = max(0, first.a - CONTEXT), max(0, first.c - CONTEXT)
        b, d = min(len(old), last.b + CONTEXT), min(len(new), last.d + CONTEXT)
        yield f"@@ -{_range(a, b)} +{_range(c, d)} @@"
        at = a
        for one in hunk:
            yield from (f" {line}" for line in old[at : one.a])
            yield from (f"-{line}" for line in old[one.a : one.b])
            yield from (f"+{line}" for line in new[one.c : one.d])
            at = one.b
        yield from (f" {line}" for line in old[at:b])


def _range(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"


def _hunks(found: Sequence[Change]) -> list[list[Change]]:
    """Changes that stand so close that they share their context."""
    hunks: list[list[Change]] = []
    for one in found:
        if hunks and one.a - hunks[-1][-1].b <= 2 * CONTEXT:
            hunks[-1].append(one)
        else:
            hunks.append([one])
    return hunks


def changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """What goes and what comes, in order."""
    start, shortest = 0, min(len(old), len(new))
    while start < shortest and old[start] == new[start]:
        start += 1
    tail = 0
    while tail < shortest - start and old[len(old) - tail - 1] == new[len(new) - tail - 1]:
        tail += 1
    a, b = old[start : len(old) - tail], new[start : len(new) - tail]
    if not a or not b:
        return [Change(start, start + len(a), start, start + len(b))] if a or b else []
    # Numbers compare faster than lines.
    known: dict[str, int] = {}
    one, other = ([known.setdefault(line, len(known)) for line in side] for side in (a, b))
    kept = _shared(one, other)
    if kept is None:
        return [Change(start, start + len(a), start, start + len(b))]
    return list(_between(kept, len(a), len(b), start))


def _between(kept: Sequence[tuple[int, int]], old: int, new: int, start: int) -> Iterator[Change]:
    """The gaps between lines that both have."""
    x = y = 0
    for i, j in (*kept, (old, new)):
        if i > x or j > y:
            yield Change(start + x, start + i, start + y, start + j)
        x, y = i + 1, j + 1


def _shared(old: Sequence[int], new: Sequence[int]) -> list[tuple[int, int]] | None:
    """The places of the lines that both have, by Myers' greedy search; None when it would take too long."""
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    steps = 0
    for depth in range(min(MOST_CHANGES, len(old) + len(new)) + 1):
        trail.append(dict(furthest))
        for k in range(-depth, depth + 1, 2):
            is_down = k == -depth or (k != depth and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if is_down else furthest[k - 1] + 1
            begin, y = x, x - k
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            steps += x - begin + 1
            furthest[k] = x
            if x >= len(old) and y >= len(new):
                return _walked(trail, len(old), len(new))
        if steps > MOST_STEPS:
            return None
    return None


def _walked(trail: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """Back along the way that was found, noting the lines that stayed."""
    kept: list[tuple[int, int]] = []
    for depth in range(len(trail) - 1, -1, -1):
        furthest, k = trail[depth], x - y
        is_down = k == -depth or (k != depth and furthest[k - 1] < furthest[k + 1])
        before = k + 1 if is_down else k - 1
        px = furthest[before] if depth else 0
        py = px - before if depth else 0
        while x > px and y > py:
            x, y = x - 1, y - 1
            kept.append((x, y))
        x, y = px, py
    return kept[::-1]
