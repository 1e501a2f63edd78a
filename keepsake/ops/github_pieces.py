"""What GitHub tells of a pull request, an issue or a release, as pieces to store."""

import hashlib
from collections.abc import Iterator, Sequence

from keepsake.core import clock, conversation
from keepsake.core.conversation import Said
from keepsake.ops.pieces import Piece
from keepsake.services.github_items import Authored, Comment, Issue, Item, Pull, Release, Review

#: What a review without a word says by itself; the others only carry remarks on lines.
_VERDICTS = {"APPROVED": "approved this.", "CHANGES_REQUESTED": "asked for changes.", "DISMISSED": ""}


def key(kind: str, name: str | int) -> str:
    """The key of an item's source: `pr/12`, `issue/7`, `release/v1.0`."""
    return f"{'pr' if kind == 'pull' else kind}/{name}"


def issue(one: Issue, comments: Sequence[Comment]) -> list[Piece]:
    """An issue and what was said to it."""
    said = [Said(each.author, each.created_at, each.body) for each in comments if not each.is_bot]
    return _pieces("issue", one, {"state": one.state}, said)


def pull(one: Pull, reviews: Sequence[Review], remarks: Sequence[Comment], comments: Sequence[Comment]) -> list[Piece]:
    """A pull request, how it was reviewed, and what was said to it, in the order of time."""
    said = [
        *(Said(each.author, each.submitted_at, told) for each in reviews if (told := _verdict(each))),
        *(Said(each.author, each.created_at, _placed(each)) for each in (*remarks, *comments) if not each.is_bot),
    ]
    state = "merged" if one.merged_at else one.state
    more = {"state": state} | ({"merged_at": one.merged_at} if one.merged_at else {})
    return _pieces("pull", one, more, sorted(said, key=lambda each: each.at))


def _verdict(review: Review) -> str:
    if told := conversation.shown(review.body):
        return told
    return "" if review.is_bot else _VERDICTS.get(review.state, "")


def _placed(comment: Comment) -> str:
    line = comment.line or comment.original_line
    told = conversation.shown(comment.body)
    return f"({comment.path}:{line}) {told}" if comment.path and line and told else told


def _pieces(kind: str, one: Item, more: dict[str, str], said: Sequence[Said]) -> list[Piece]:
    labels = ", ".join(label.name for label in one.labels if label.name)
    metadata = {
        "type": kind,
        "date": one.created_at,
        "number": one.number,
        "author": one.author,
        "url": one.html_url,
        **more,
        **({"labels": labels} if labels else {}),
    }
    title = one.title.strip() or key(kind, one.number)
    opened = Said(one.author, one.created_at, one.body)
    return [
        Piece(
            kind=kind,
            key=key(kind, one.number),
            revision=one.updated_at,
            subtype=kind,
            title=title,
            text=section.text,
            at=clock.parse(section.at or one.created_at),
            metadata=metadata,
            authors=tuple(_people(one, section.names)),
            uri=one.html_url,
        )
        for section in conversation.sections(title, opened, said)
    ]


def _people(one: Authored, names: Sequence[str]) -> Iterator[str]:
    """Those who speak and are people."""
    yield from (name for name in names if name != "ghost" and not (one.is_bot and name == one.author))


def revision(one: Release) -> str:
    """What tells one state of a release from the next; older servers do not say when one was changed."""
    if one.updated_at:
        return one.updated_at
    digest = hashlib.sha256(f"{one.name}\n{one.body}".encode()).hexdigest()[:12]
    return f"{one.published_at or one.created_at} {digest}"


def release(one: Release) -> list[Piece]:
    """A release and its notes."""
    author = one.author.login if one.author else "ghost"
    happened = one.published_at or one.created_at
    title = one.name.strip() or one.tag_name
    metadata = {
        "type": "release",
        "date": happened,
        "tag": one.tag_name,
        "state": "prerelease" if one.prerelease else "released",
        "author": author,
        "url": one.html_url,
    }
    is_person = one.author is not None and not one.author.is_bot
    return [
        Piece(
            kind="release",
            key=key("release", one.tag_name),
            revision=revision(one),
            subtype="release",
            title=title,
            text=section.text,
            at=clock.parse(happened),
            metadata=metadata,
            authors=(author,) if is_person else (),
            uri=one.html_url,
        )
        for section in conversation.sections(title, Said(author, happened, one.body), ())
    ]
