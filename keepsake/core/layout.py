"""Where the nodes of a small graph stand: drawn once, always alike, and hardly moved when something is added."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Nodes that one picture holds.
MOST = 60
#: Nodes up to which a picture has its usual size; it grows with more.
ROOMY = 14
WIDTH, HEIGHT = 800, 520
#: What a node takes with its label, and how near it may come to the edge.
BOX_X, BOX_Y, MARGIN_X, MARGIN_Y = 146.0, 46.0, 94.0, 44.0
_ROUNDS, _PUSHES = 90, 60
#: How much less than a new node moves one that had its place.
_STEADY = 0.025
#: The angle by which a sunflower places its seeds.
_GOLDEN = math.pi * (3 - math.sqrt(5))
#: Raised when nodes shall be placed otherwise.
_MANNER = "1"

Point = tuple[float, float]
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layout:
    """A picture's size, and the place of each node in it."""

    width: int
    height: int
    places: Mapping[int, Point]


def digest(nodes: Sequence[int], edges: Sequence[Pair]) -> str:
    """Tells apart graphs that need a layout of their own."""
    told = f"{_MANNER}|{sorted(nodes)}|{sorted(set(edges))}"
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def size(nodes: int) -> tuple[int, int]:
    """Width and height of a picture of so many nodes."""
    grown = math.sqrt(max(1.0, nodes / ROOMY))
    return round(WIDTH * grown), round(HEIGHT * grown)


def laid(nodes: Sequence[int], edges: Sequence[Pair], known: Mapping[int, Point], middle: int | None = None) -> Layout:
    """Place nodes, the most important first; `known` are places, as shares of the picture, that are nearly kept."""
    nodes = nodes[:MOST]
    width, height = size(len(nodes))
    spots = _begun(nodes, edges, known)
    if middle in spots:
        spots[middle] = [0.5, 0.5]
    eager = {id: 0.0 if id == middle else _STEADY if id in known else 1.0 for id in spots}
    lines = [(a, b) for a, b in sorted(set(edges)) if a in spots and b in spots and a != b]
    for turn in range(_ROUNDS):
        _moved(spots, lines, {id: share * 0.12 * (1 - turn / _ROUNDS) for id, share in eager.items()})
    places = {id: [x * width, y * height] for id, (x, y) in spots.items()}
    for _ in range(_PUSHES):
        if not _parted(places, middle):
            break
        _kept_in(places, width, height)
    _kept_in(places, width, height)
    return Layout(width, height, {id: (round(x, 1), round(y, 1)) for id, (x, y) in places.items()})


def _begun(nodes: Sequence[int], edges: Sequence[Pair], known: Mapping[int, Point]) -> dict[int, list[float]]:
    """Where each node starts: where it was, else beside what it is related to, else on a spiral from the middle."""
    near: dict[int, list[int]] = {}
    for a, b in edges:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    spots: dict[int, list[float]] = {}
    for index, id in enumerate(nodes):
        turn, reach = index * _GOLDEN, 0.42 * math.sqrt(index / max(1, len(nodes)))
        beside = [known[other] for other in near.get(id, ()) if other in known]
        if id in known:
            spots[id] = [*known[id]]
        elif beside:
            x, y = (sum(axis) / len(beside) for axis in zip(*beside, strict=True))
            spots[id] = [x + 0.08 * math.cos(turn), y + 0.08 * math.sin(turn)]
        else:
            spots[id] = [0.5 + reach * math.cos(turn), 0.5 + reach * math.sin(turn)]
    return spots


def _moved(spots: dict[int, list[float]], lines: Sequence[Pair], reach: Mapping[int, float]) -> None:
    """One round: all push each other off, what is related pulls, and nothing drifts away."""
    gap = 0.66 / math.sqrt(max(1, len(spots)))
    pull = {id: [(0.5 - x) * gap, (0.5 - y) * gap] for id, (x, y) in spots.items()}
    ids = list(spots)
    for index, one in enumerate(ids):
        x, y = spots[one]
        mine = pull[one]
        for other in ids[index + 1 :]:
            dx, dy = x - spots[other][0], y - spots[other][1]
            square = dx * dx + dy * dy or 1e-6
            force = gap * gap / square
            theirs = pull[other]
            mine[0] += dx * force
            mine[1] += dy * force
            theirs[0] -= dx * force
            theirs[1] -= dy * force
    for a, b in lines:
        dx, dy = spots[b][0] - spots[a][0], spots[b][1] - spots[a][1]
        force = math.hypot(dx, dy) / gap
        for id, sign in ((a, 1), (b, -1)):
            pull[id][0] += sign * dx * force
            pull[id][1] += sign * dy * force
    for id, (dx, dy) in pull.items():
        far = math.hypot(dx, dy) or 1e-6
        step = min(far, reach[id]) / far
        spots[id] = [min(1.0, max(0.0, spots[id][0] + dx * step)), min(1.0, max(0.0, spots[id][1] + dy * step))]


def _parted(places: dict[int, list[float]], middle: int | None) -> bool:
    """Move apart whose labels would lie on each other; whether any did."""
    ids, moved = list(places), False
    for index, one in enumerate(ids):
        for other in ids[index + 1 :]:
            a, b = places[one], places[other]
            dx, dy = b[0] - a[0], b[1] - a[1]
            over_x, over_y = BOX_X - abs(dx), BOX_Y - abs(dy)
            if over_x <= 0 or over_y <= 0:
                continue
            moved = True
            axis, by = (0, over_x / 2 + 1) if over_x < over_y else (1, over_y / 2 + 1)
            sign = 1 if (dx, dy)[axis] >= 0 else -1
            places[one][axis] -= sign * by * (0 if one == middle else 1)
            places[other][axis] += sign * by * (0 if other == middle else 1)
    return moved


def _kept_in(places: dict[int, list[float]], width: int, height: int) -> None:
    for spot in places.values():
        spot[0] = min(width - MARGIN_X, max(MARGIN_X, spot[0]))
        spot[1] = min(height - MARGIN_Y, max(MARGIN_Y, spot[1]))
