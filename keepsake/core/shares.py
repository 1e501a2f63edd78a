"""Room shared out: each part gets what it was promised, and what one leaves over goes to the others in turn."""

from collections.abc import Mapping, Sequence


def shared(costs: Mapping[str, Sequence[int]], shares: Mapping[str, float], room: int) -> dict[str, int]:
    """How many of each part's things fit, from its first on; `shares` tells whose turn it is, and its promise."""
    kept = dict.fromkeys(shares, 0)
    left = room
    for name, share in shares.items():
        kept[name], spent = _fitting(costs[name], min(left, int(room * share)))
        left -= spent
    for name in shares:
        more, spent = _fitting(costs[name][kept[name] :], left)
        kept[name] += more
        left -= spent
    return kept


def _fitting(costs: Sequence[int], room: int) -> tuple[int, int]:
    """How many fit, and what they cost together."""
    spent = 0
    for n, cost in enumerate(costs):
        if spent + cost > room:
            return n, spent
        spent += cost
    return len(costs), spent
