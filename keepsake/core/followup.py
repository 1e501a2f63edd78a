"""A question that goes on from earlier ones: what it is about is read from those where it does not say so itself."""

import re
from collections.abc import Sequence
from dataclasses import replace

from keepsake.core import inquiry
from keepsake.core.inquiry import Inquiry

_GOES_ON = re.compile(r"\s*(?:and|but|or|so|then|also|what about|how about)\b", re.IGNORECASE)
#: Words that ask for more of the same and name nothing.
_MORE = frozenset(
    """again also answer different detail detailed details elaborate else example examples exactly explain further
    instead mean means meant more one ones other others same short shorter sure that these thing things this those
    what which""".split()
)


def read(question: str, earlier: Sequence[str], now: int) -> Inquiry:
    """Read a question after these, the latest last."""
    asked = inquiry.read(question, now)
    goes_on = bool(_GOES_ON.match(question))
    if not earlier or not (_is_bare(asked) or goes_on):
        return asked
    known = (inquiry.read(one, now) for one in reversed(earlier))
    subject = next((one for one in known if not _is_bare(one)), None)
    if subject is None:
        return asked
    kind = subject.kind if asked.kind == "other" else asked.kind
    if not _is_bare(asked):
        return replace(asked, kind=kind, windows=asked.windows or subject.windows)
    # Retrieval and a model read it as one question.
    whole = f"{question.strip()} ({subject.question.strip()})"
    return replace(subject, question=whole, kind=kind, windows=asked.windows or subject.windows)


def _is_bare(asked: Inquiry) -> bool:
    """Whether a question names nothing by itself."""
    named = (*asked.identifiers, *asked.paths, *asked.tickets, *asked.commits, *asked.versions)
    return not named and all(word.lower() in _MORE for word in asked.words)
