"""Who and what a memory speaks of."""

from collections.abc import Sequence

from keepsake.core import names
from keepsake.store import entities

#: What is longer is no name, whoever says so.
LONGEST_NAME = 100


def named(told: str, more: Sequence[str] = ()) -> list[entities.Named]:
    """Who and what a text speaks of, each once; `more` are names that a language model found in it."""
    found: dict[str, entities.Named] = {}
    for mention in names.entities(told):
        folded = names.folded(mention.name)
        if folded and (folded not in found or mention.role == "speaker"):
            found[folded] = entities.Named(mention.name, folded, mention.kind, mention.role)
    for name in more:
        if len(name) <= LONGEST_NAME and (folded := names.folded(name)):
            found.setdefault(folded, entities.Named(name, folded, "name", "named"))
    return list(found.values())
