"""Artifacts: what is made and worked at in a project, with every version kept and the current text searchable."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, ids, linediff, text
from keepsake.core.errors import BadInput, Conflict, NotFound
from keepsake.core.models import InBank, Receipt, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, Filled
from keepsake.ops import banks as bank_ops
from keepsake.ops import forgetting, versions
from keepsake.ops.versions import Draft, Ready
from keepsake.store import artifacts, banks
from keepsake.store.artifacts import Artifact, Version
from keepsake.store.engine import Tx

#: Characters of the largest content, bytes of the largest that is handed out whole, and versions that are listed.
LARGEST, SHOWN, VERSIONS = 8 * 1024 * 1024, 1024 * 1024, 100
#: Characters of a diff.
LONGEST_DIFF = 256 * 1024
LONGEST_IDENTIFIER = 100
#: How often a made-up identifier is tried with another number behind it.
TRIES = 1_000
_IDENTIFIER = re.compile(r"(?!\d+$)\w[\w.-]*")
_TYPE = re.compile(r"[a-z0-9][a-z0-9+._/-]*")


def _identifier(told: str) -> str:
    if not _IDENTIFIER.fullmatch(told):
        raise ValueError("must be letters, digits, dots, hyphens and underscores, and not digits alone: release-plan")
    return told


def _type(told: str) -> str:
    if not _TYPE.fullmatch(told.lower()):
        raise ValueError("must be one word such as markdown, html, mermaid, code or text/csv")
    return told.lower()


Identifier = Annotated[Clean, Field(min_length=1, max_length=LONGEST_IDENTIFIER), AfterValidator(_identifier)]
Type = Annotated[Clean, Field(min_length=1, max_length=64), AfterValidator(_type)]
ChatRef = Annotated[Clean, Field(min_length=1, max_length=100)]
Number = Annotated[int, Field(ge=1, le=1 << 31)]


class Create(InBank):
    """A new artifact."""

    title: Filled = Field(max_length=300, description="What it is called.")
    content: Filled = Field(max_length=LARGEST, description="All of it: up to 8 MiB, and what a request may hold.")
    artifact_type: Type = Field("markdown", description="One word: markdown, html, mermaid, code, …")
    identifier: Identifier | None = Field(
        None, description="A readable name of its own, unique in the bank; made from the title when left out."
    )
    chat_id: ChatRef | None = Field(None, description="The conversation it came from, to list it by.")
    note: Clean = Field("", max_length=1_000, description="What this version is about.")


class Written(Result):
    """What became of it."""

    artifact_id: str = Field(description="Id of the artifact.")
    identifier: str = Field(description="Its readable name.")
    version: int = Field(description="Its current version.")
    status: Literal["created", "updated", "unchanged"] = Field(description="unchanged: it said this already.")
    redacted: list[str] | None = Field(
        None, description="Kinds of secrets that were taken out before anything was stored, where there were any."
    )


@operation("artifact.create", effect=Effect.MUTATE, scope="memory:write")
async def create(ctx: Ctx, given: Create) -> Written:
    """Store a document, page, diagram or piece of code as an artifact; later versions go to artifact.update."""
    draft = Draft(given.title.strip(), given.artifact_type, given.content)

    async def body(tx: Tx, ready: Ready) -> Changed[Written]:
        bank = await bank_ops.ensured(tx, ctx, given.bank)
        await versions.check(tx, ctx, bank, ready)
        made = await _inserted(tx, _new(ctx, bank, given), is_given=given.identifier is not None)
        await versions.write(tx, ctx, made, ready, given.note)
        return Changed(_written(ctx, made, "created"), bank.id, [made.id], draft.content)

    return await _change(ctx, given.bank, draft, body)


def _new(ctx: Ctx, bank: banks.Bank, given: Create) -> Artifact:
    made_up = re.sub(r"[\W_]+", "-", given.title.lower())[: LONGEST_IDENTIFIER - 15].strip("-")
    if not _IDENTIFIER.fullmatch(made_up):
        made_up = f"artifact-{made_up}".strip("-")
    return Artifact(
        org=ctx.org,
        bank=bank.id,
        id=ctx.store.new_id(),
        identifier=given.identifier or made_up,
        title=given.title.strip(),
        type=given.artifact_type,
        chat=given.chat_id or "",
        version=1,
        author=ctx.principal.name,
        created_at=ctx.now,
        updated_at=ctx.now,
    )


async def _inserted(tx: Tx, artifact: Artifact, is_given: bool) -> Artifact:
    """Write an artifact under its identifier; one that was made up gets a number where it is taken."""
    stem = artifact.identifier
    for tried in [stem] if is_given else [stem, *(f"{stem}-{n}" for n in range(2, TRIES))]:
        made = replace(artifact, identifier=tried)
        if await artifacts.insert(tx, made):
            return made
    raise Conflict(f"There is an artifact {stem!r} already. Use another identifier, or update that one.")


def _written(ctx: Ctx, one: Artifact, status: Literal["created", "updated", "unchanged"]) -> Written:
    found = list(ctx.redacted) or None
    return Written(
        artifact_id=str(one.id), identifier=one.identifier, version=one.version, status=status, redacted=found
    )


class OneArtifact(InBank):
    """Which artifact."""

    id: Clean = Field(min_length=1, max_length=LONGEST_IDENTIFIER, description="Id or identifier of the artifact.")


async def found(tx: Tx, ctx: Ctx, given: OneArtifact) -> tuple[banks.Bank, Artifact]:
    """The artifact meant; another bank's is as unknown as none."""
    bank = await bank_ops.found(tx, ctx, given.bank)
    id = ids.parse(given.id)
    one = None
    if bank is not None:
        look = artifacts.get(tx, ctx.org, bank.id, id) if id else artifacts.named(tx, ctx.org, bank.id, given.id)
        one = await look
    if bank is None or one is None:
        raise NotFound(f"No artifact {given.id!r} in this bank. List the artifacts to find its id.")
    return bank, one


class Update(OneArtifact):
    """What the next version says."""

    content: Filled = Field(max_length=LARGEST, description="All of it: up to 8 MiB, and what a request may hold.")
    title: Filled | None = Field(None, max_length=300, description="What it is called from now on.")
    artifact_type: Type | None = Field(None, description="What kind of thing it is from now on.")
    note: Clean = Field("", max_length=1_000, description="What this version changes.")
    expected_version: Number | None = Field(
        None, description="The version that you read; refused if someone has written another since."
    )


@operation("artifact.update", effect=Effect.MUTATE, scope="memory:write")
async def update(ctx: Ctx, given: Update) -> Written:
    """Write a new version of an artifact; earlier ones are kept, and the same text again changes nothing."""
    _, known = await ctx.read(lambda tx: found(tx, ctx, given))
    draft = Draft((given.title or known.title).strip(), given.artifact_type or known.type, given.content, known.id)

    async def body(tx: Tx, ready: Ready) -> Changed[Written]:
        bank, one = await found(tx, ctx, given)
        # Taken before anything is compared: of two who write at once, the second sees what the first wrote.
        await banks.step(tx, ctx.org, bank.id)
        _, one = await found(tx, ctx, given)
        _check_version(one, given.expected_version)
        await versions.check(tx, ctx, bank, ready)
        if await _is_same(tx, one, ready):
            return Changed(_written(ctx, one, "unchanged"), bank.id, [one.id])
        made = replace(one, title=draft.title, type=draft.type, version=one.version + 1, updated_at=ctx.now)
        await artifacts.advance(tx, made)
        await versions.write(tx, ctx, made, ready, given.note)
        return Changed(_written(ctx, made, "updated"), bank.id, [made.id], draft.content)

    return await _change(ctx, given.bank, draft, body)


def _check_version(one: Artifact, expected: int | None) -> None:
    if expected is not None and expected != one.version:
        raise Conflict(
            f"The artifact is at version {one.version} now, not {expected}. Read it again and change that version."
        )


async def _is_same(tx: Tx, one: Artifact, ready: Ready) -> bool:
    if (one.title, one.type) != (ready.draft.title, ready.draft.type):
        return False
    current = await artifacts.version(tx, one, one.version)
    held = await artifacts.content(tx, one.org, one.bank, current.source) if current else None
    return held is not None and held.hash == text.digest(ready.draft.content)


async def _change(
    ctx: Ctx, named: str | None, draft: Draft, body: Callable[[Tx, Ready], Coroutine[None, None, Changed[Written]]]
) -> Written:
    """Make a version ready, then write it; once more where something was forgotten in between."""
    while True:
        bank = await ctx.read(lambda tx: bank_ops.found(tx, ctx, named))
        ready = await versions.ready(ctx, bank, draft)
        try:
            return await ctx.change(lambda tx: body(tx, ready))  # noqa: B023
        except versions.Outdated:
            continue


class Get(OneArtifact):
    """Which artifact, and which version of it."""

    version: Number | None = Field(None, description="An earlier version; the current one when left out.")


class Described(Result):
    """A version of an artifact."""

    version: int = Field(description="Its number, from 1.")
    at: str = Field(description="When it was written, ISO 8601.")
    author: str = Field(description="Who wrote it.")
    size: int = Field(description="Bytes of its content.")
    note: str = Field(description="What it is about, as its author says.")


class Listed(Result):
    """An artifact without its content."""

    artifact_id: str = Field(description="Its id.")
    identifier: str = Field(description="Its readable name.")
    title: str = Field(description="What it is called.")
    artifact_type: str = Field(description="markdown, html, mermaid, code, …")
    chat_id: str | None = Field(None, description="The conversation it came from.")
    version: int = Field(description="Its current version.")
    size: int = Field(description="Bytes of its content.")
    author: str = Field(description="Who made it.")
    created_at: str = Field(description="When it was made, ISO 8601.")
    updated_at: str = Field(description="When its current version was written, ISO 8601.")


class Whole(Listed):
    """An artifact with what one of its versions says."""

    content: str | None = Field(None, description="What the version says; absent when it has more than 1 MiB.")
    content_truncated: bool = Field(description="Whether the content was left out for its size.")
    shown_version: int = Field(description="The version that this is.")
    versions: list[Described] = Field(description="Its versions, newest first; the last hundred of them.")


@operation("artifact.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: Get) -> Whole:
    """Read one artifact, now or as an earlier version; content over 1 MiB is left out, everything else is told."""

    async def body(tx: Tx) -> Whole:
        _, one = await found(tx, ctx, given)
        version = await _version(tx, one, given.version or one.version)
        is_large = version.size > SHOWN
        content = None if is_large else (await artifacts.content(tx, one.org, one.bank, version.source)).text
        known = await artifacts.versions(tx, one.org, one.bank, one.id, VERSIONS)
        return Whole(
            **_listed(one, version.size).model_dump(),
            content=content,
            content_truncated=is_large,
            shown_version=version.version,
            versions=[_described(each) for each in known],
        )

    return await ctx.read(body)


async def _version(tx: Tx, one: Artifact, number: int) -> Version:
    version = await artifacts.version(tx, one, number)
    if version is None:
        raise NotFound(f"The artifact has no version {number}; its current one is {one.version}.")
    return version


def _described(version: Version) -> Described:
    return Described(
        version=version.version,
        at=clock.iso(version.at),
        author=version.author,
        size=version.size,
        note=version.note,
    )


def _listed(one: Artifact, size: int) -> Listed:
    return Listed(
        artifact_id=str(one.id),
        identifier=one.identifier,
        title=one.title,
        artifact_type=one.type,
        chat_id=one.chat or None,
        version=one.version,
        size=size,
        author=one.author,
        created_at=clock.iso(one.created_at),
        updated_at=clock.iso(one.updated_at),
    )


class ListArtifacts(InBank):
    """Which artifacts."""

    chat_id: ChatRef | None = Field(None, description="Only those of this conversation.")
    artifact_type: Type | None = Field(None, description="Only those of this type.")
    limit: int = Field(20, ge=1, le=100, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Number of results to skip.")


class Artifacts(Result):
    """A page of artifacts, the last changed first."""

    artifacts: list[Listed] = Field(description="The last changed first.")
    total: int = Field(description="How many there are in all.")


@operation("artifact.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListArtifacts) -> Artifacts:
    """List artifacts, the last changed first; of one conversation or one type where you name it."""

    async def body(tx: Tx) -> Artifacts:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Artifacts(artifacts=[], total=0)
        wanted = artifacts.Page(
            ctx.org, bank.id, given.chat_id or "", given.artifact_type or "", given.limit, given.offset
        )
        rows, total = await artifacts.page(tx, wanted)
        sizes = await artifacts.sizes(tx, ctx.org, bank.id, {one.id: one.version for one in rows})
        return Artifacts(artifacts=[_listed(one, sizes.get(one.id, 0)) for one in rows], total=total)

    return await ctx.read(body)


class Diff(OneArtifact):
    """Which versions to compare."""

    from_version: Number | None = Field(None, description="The earlier one; the one before the later when left out.")
    to_version: Number | None = Field(None, description="The later one; the current when left out.")


class Difference(Result):
    """What changed between two versions."""

    artifact_id: str = Field(description="Id of the artifact.")
    identifier: str = Field(description="Its readable name.")
    from_version: int = Field(description="The version compared from.")
    to_version: int = Field(description="The version compared to.")
    added: int = Field(description="Lines that came.")
    removed: int = Field(description="Lines that went.")
    diff: str = Field(description="A unified diff; empty when both say the same.")
    diff_truncated: bool = Field(description="Whether the end of the diff was left out for its size.")


@operation("artifact.diff", effect=Effect.READ, scope="memory:read")
async def diff(ctx: Ctx, given: Diff) -> Difference:
    """Show what changed between two versions of an artifact, as a unified diff."""

    async def body(tx: Tx) -> tuple[Artifact, list[Version], list[str]]:
        _, one = await found(tx, ctx, given)
        later = given.to_version or one.version
        pair = [await _version(tx, one, number) for number in (given.from_version or max(1, later - 1), later)]
        if any(each.size > SHOWN for each in pair):
            raise BadInput("Versions of more than 1 MiB are not compared here. Read both, and compare them yourself.")
        return one, pair, [(await artifacts.content(tx, one.org, one.bank, each.source)).text for each in pair]

    one, (was, now), (old, new) = await ctx.read(body)
    lines = await asyncio.to_thread(lambda: list(linediff.unified(old.splitlines(), new.splitlines())))
    names = [f"--- {one.identifier} (version {was.version})", f"+++ {one.identifier} (version {now.version})"]
    told = "\n".join([*names, *lines]) if lines else ""
    return Difference(
        artifact_id=str(one.id),
        identifier=one.identifier,
        from_version=was.version,
        to_version=now.version,
        added=sum(line.startswith("+") for line in lines),
        removed=sum(line.startswith("-") for line in lines),
        diff=told[:LONGEST_DIFF],
        diff_truncated=len(told) > LONGEST_DIFF,
    )


@operation("artifact.delete", effect=Effect.DESTRUCTIVE, scope="memory:delete")
async def delete(ctx: Ctx, given: OneArtifact) -> Receipt:
    """Delete an artifact with every version, and all memories of it; leaves a receipt."""
    await ctx.app.embedding.static_model(ctx.store)

    async def body(tx: Tx) -> Changed[Receipt]:
        bank, one = await found(tx, ctx, given)
        await banks.step(tx, ctx.org, bank.id)
        told = await artifacts.memories(tx, ctx.org, bank.id, [one.id])
        await forgetting.suppress(tx, ctx, bank, told)
        receipt = await forgetting.forget(tx, ctx, bank, told)
        await forgetting.drop_artifacts(tx, ctx, bank, [one.id])
        return Changed(receipt, bank.id, [one.id, *told])

    return await ctx.change(body)
