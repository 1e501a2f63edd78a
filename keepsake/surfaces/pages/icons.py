"""Icons of 16 px, our mark, and the shape and word of each kind of memory."""

import math

from markupsafe import Markup, escape

#: Paths in a box of 16 by 16, drawn with a stroke of 1.5.
ICONS = {
    "home": "M2.5 7.5 8 3l5.5 4.5V13h-4V9.5h-3V13h-4z",
    "memory": "M3.5 2.5h7l2 2v9h-9zM5.5 6h5M5.5 8.5h5M5.5 11h3",
    "time": "M8 4.5V8l2.5 1.5M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11z",
    "graph": (
        "M4 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM12 7.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3z"
        "M6 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM5.4 4.4l5.1 1.3M4.3 5.5l1.3 5M10.9 7l-3.8 4"
    ),
    "ask": "M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2zM5.5 6.2h5M5.5 8.2h3",
    "decision": "M8 2.5 13.5 8 8 13.5 2.5 8z",
    "reject": "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM4.2 11.8l7.6-7.6",
    "model": (
        "M8 2.5c-2.5 0-4 1.7-4 3.8 0 1.5.9 2.4 1.5 3.2h5c.6-.8 1.5-1.7 1.5-3.2 0-2.1-1.5-3.8-4-3.8z"
        "M6 11.5h4M6.8 13.5h2.4"
    ),
    "doc": "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
    "approve": "M2.5 9.5 3.8 3h8.4l1.3 6.5v3.5h-11zM2.5 9.5h3.2L6.5 11h3l.8-1.5h3.2",
    "ops": "M2.5 4.5h11M2.5 8h7M2.5 11.5h9",
    "usage": "M3 13V9M6.5 13V6M10 13V8M13.5 13V3",
    "health": "M2 8.5h3l1.5-4 2.5 7 1.5-3H14",
    "audit": (
        "M6.5 9.5 9.5 6.5M7 5.2l1.6-1.6a2.4 2.4 0 0 1 3.6 3.2l-1.8 1.8M9 10.8l-1.6 1.6a2.4 2.4 0 0 1-3.6-3.2l1.8-1.8"
    ),
    "project": "M2.5 4.5h4l1.5 1.5h5.5v6.5h-11z",
    "key": "M10.5 2.5a3 3 0 1 1-2.6 4.5L3 11.9V13.5h2v-1.5h1.5v-1.5H8L9 9.2",
    "client": "M2.5 3.5h11v7h-11zM6 13h4M8 10.5V13M5 6l1.5 1.2L5 8.4M8.2 8.4h2.3",
    "user": "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3.2 13.5c.4-2.4 2.3-3.7 4.8-3.7s4.4 1.3 4.8 3.7",
    "search": "M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM10.7 10.7 14 14",
    "more": "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
    "ok": "M3.5 8.5l3 3 6-7",
    "x": "M4 4l8 8M12 4l-8 8",
    "warn": "M8 2.8 14 13H2zM8 6.8v2.7M8 11.4h.01",
    "info": "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM8 7.3v3.4M8 5.2h.01",
    "pin": "M6 2.5h4l-.5 4 2 2v1h-7v-1l2-2zM8 9.5v4",
    "edit": "M3 13l.6-2.8 7-7 2.2 2.2-7 7zM9.2 4.6l2.2 2.2",
    "commit": "M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 8h4M10.5 8h4",
    "web": (
        "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM2.7 8h10.6M8 2.5c3.4 3.4 3.4 7.6 0 11"
        "M8 2.5c-3.4 3.4-3.4 7.6 0 11"
    ),
    "lock": "M4 7.5h8v6H4zM5.7 7.5V5.3a2.3 2.3 0 0 1 4.6 0v2.2",
    "fact": "M8 4.2a3.8 3.8 0 1 1 0 7.6 3.8 3.8 0 0 1 0-7.6z",
    "rule": "M3 5h10M3 11h10M6 2.5 4.8 13.5M11.2 2.5 10 13.5",
    "heart": "M8 13 3.3 8.2a2.8 2.8 0 0 1 4-4l.7.8.7-.8a2.8 2.8 0 0 1 4 4z",
    "flag": "M4 13.5v-11h7.5l-1.5 2.8 1.5 2.7H4",
    "eye": (
        "M1.8 8c1.5-2.7 3.7-4 6.2-4s4.7 1.3 6.2 4c-1.5 2.7-3.7 4-6.2 4S3.3 10.7 1.8 8z"
        "M8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z"
    ),
    "down": "M8 2.5v7.5M4.8 7 8 10.2 11.2 7M3 13.2h10",
    "arrow": "M3 8h10M9.5 4.5 13 8l-3.5 3.5",
    "terminal": "M2.5 3.5h11v9h-11zM5 6.5l2 1.7-2 1.7M8.5 10h2.5",
    "copy": "M5.5 5.5h8v8h-8zM2.5 10.5v-8h8",
    "plus": "M8 3v10M3 8h10",
    "minus": "M3 8h10",
    "swap": "M3 5.5h9L9.8 3.2M13 10.5H4l2.2 2.3",
}
#: Which shape tells a kind of memory; the graph uses the same.
KINDS = {
    "decision": "decision",
    "rejected": "reject",
    "constraint": "rule",
    "heuristic": "rule",
    "fact": "fact",
    "note": "fact",
    "insight": "model",
    "preference": "heart",
    "observation": "eye",
    "summary": "doc",
    "chunk": "doc",
    "artifact": "doc",
    "milestone": "flag",
    "commit": "commit",
}
#: Where the word that people read is not the stored one.
WORDS = {"rejected": "Rejected option", "chunk": "Passage", "insight": "Insight"}


def icon(name: str, label: str = "") -> Markup:
    """An icon; without a label it is only beside words that say the same."""
    told = f'role="img" aria-label="{escape(label)}"' if label else 'aria-hidden="true"'
    return Markup(f'<svg class="i" viewBox="0 0 16 16" {told}><path d="{ICONS[name]}"/></svg>')


def kind(name: str) -> Markup:
    """A kind of memory as its shape and its word."""
    shape, word = KINDS.get(name, "fact"), WORDS.get(name, name.capitalize())
    return Markup(f'<span class="kind">{icon(shape)}{escape(word)}</span>')


def flower() -> Markup:
    """The mark: a forget-me-not of five petals."""
    turns = [math.radians(72 * petal - 90) for petal in range(5)]
    petals = "".join(
        f'<circle cx="{12 + 5.2 * math.cos(turn):.2f}" cy="{12 + 5.2 * math.sin(turn):.2f}" r="4.1" class="f1"/>'
        for turn in turns
    )
    heart = '<circle cx="12" cy="12" r="3.2" class="f0"/><circle cx="12" cy="12" r="1.7" class="f2"/>'
    return Markup(f'<svg viewBox="0 0 24 24" aria-hidden="true">{petals}{heart}</svg>')
