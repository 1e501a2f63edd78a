"""Mental models: create, list, look at, change, refresh, delete; their text is made by the background."""

import re
from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator, Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, secrets
from keepsake.core.errors import BadInput, Conflict, NotFound
from keepsake.core.models import InBank, Receipt, Result, Tags
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean, Filled
from keepsake.ops import banks as bank_ops
from keepsake.ops import handed_out, receipts
from keepsake.store import banks, mental_models
from keepsake.store.engine import Tx
from keepsake.store.mental_models import Change, Version

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LONGEST_ID = 100
#: How often a made-up id is tried with another number behind it.
TRIES = 100


def _model_id(id: str) -> str:
    if not _ID.fullmatch(id):
        raise ValueError("must be lowercase letters and digits with single hyphens between them: team-directory")
    return id


ModelId = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_ID, json_schema_extra={"pattern": f"^{_ID.pattern}$"}),
    AfterValidator(_model_id),
]
MaxTokens = Annotated[int, Field(ge=64, le=32_000)]


class CreateModel(InBank):
    """A new mental model."""

    name: Filled = Field(max_length=200, description="Human-readable name for the mental model.")
    source_query: Filled = Field(max_length=20_000, description="The query used to generate and refresh the model.")
    id: ModelId | None = Field(None, description="Custom id: lowercase letters and digits with hyphens.")
    tags: Tags = Field(default_factory=list, description="Tags for organizing and filtering models.")
    max_tokens: MaxTokens = Field(2048, description="Maximum tokens for the model's content.")
    refresh_after_consolidation: bool = Field(False, description="Make it anew after memory consolidation.")


class Asked(Result):
    """A model whose text the background will make."""

    id: str = Field(description="Id of the mental model.")
    operation_id: str = Field(description="Id of the background operation that makes its text.")


class Model(Result):
    """A mental model without its text."""

    id: str = Field(description="Id of the mental model.")
    name: str = Field(description="Its name.")
    source_query: str = Field(description="The query it answers.")
    tags: list[str] = Field(description="Its tags.")
    max_tokens: int = Field(description="Maximum tokens of its content.")
    refresh_after_consolidation: bool = Field(description="Whether it is made anew after consolidation.")
    created_at: str = Field(description="When it was created, ISO 8601.")
    updated_at: str = Field(description="When it last changed, ISO 8601.")
    made_at: str | None = Field(None, description="When its text was made; absent before the first.")
    made_by: str | None = Field(None, description="The language model that made its text, or `rules`.")
    stale: bool = Field(description="Whether memories have changed since, or it has no text yet.")


class Resting(Result):
    """A sentence and what it rests on."""

    sentence: str = Field(description="The sentence.")
    memories: list[str] = Field(description="Ids of the memories it rests on.")


class ModelText(Model):
    """A mental model with its text."""

    content: str = Field(description="Its text; empty before the first is made, or when nothing relevant is known.")
    version: int = Field(0, description="Which version of the text this is; 0 before the first.")
    versions: int = Field(description="How many versions of the text are kept.")
    evidence: list[Resting] = Field(description="What each sentence rests on.")


def _shown(model: mental_models.Model, version: Version | None, change: Change) -> Model:
    return Model(
        id=model.id,
        name=model.name,
        source_query=model.source_query,
        tags=list(model.tags),
        max_tokens=model.max_tokens,
        refresh_after_consolidation=model.refresh_after_consolidation,
        created_at=clock.iso(model.created_at),
        updated_at=clock.iso(model.updated_at),
        made_at=clock.iso(version.made_at) if version else None,
        made_by=version.maker if version else None,
        stale=version is None or change.since(version),
    )


@operation("model.create", effect=Effect.MUTATE, scope="memory:write")
async def create(ctx: Ctx, given: CreateModel) -> Asked:
    """Create a mental model: a living document that answers a standing question; made in the background."""

    async def body(tx: Tx) -> Changed[Asked]:
        bank = await bank_ops.ensured(tx, ctx, given.bank)
        await banks.step(tx, ctx.org, bank.id)
        id = await _inserted(tx, _new(ctx, bank, given), is_given=given.id is not None)
        job = await mental_models.asked(tx, ctx.store, ctx.org, bank.id, id, ctx.now)
        return Changed(Asked(id=id, operation_id=str(job)), bank.id, [job], given.model_dump_json())

    return await ctx.change(body)


def _new(ctx: Ctx, bank: banks.Bank, given: CreateModel) -> mental_models.Model:
    made_up = (
        re.sub(r"[^a-z0-9]+", "-", secrets.redacted(given.name).text.lower())[: LONGEST_ID - 4].strip("-") or "model"
    )
    return mental_models.Model(
        org=ctx.org,
        bank=bank.id,
        id=given.id or made_up,
        name=secrets.redacted(given.name).text,
        source_query=secrets.redacted(given.source_query).text,
        tags=tuple(dict.fromkeys(given.tags)),
        max_tokens=given.max_tokens,
        refresh_after_consolidation=given.refresh_after_consolidation,
        version=0,
        created_at=ctx.now,
        updated_at=ctx.now,
    )


async def _inserted(tx: Tx, model: mental_models.Model, is_given: bool) -> str:
    """Write the model under its id; one that was made up gets a number where it is taken."""
    tried = [model.id] if is_given else [model.id, *(f"{model.id}-{n}" for n in range(2, TRIES))]
    for id in tried:
        if await mental_models.insert(tx, replace(model, id=id)):
            return id
    raise Conflict(f"There is a mental model {model.id!r} already. Use another mental_model_id, or update that one.")


class ListModels(InBank):
    """Which models."""

    tags: Tags = Field(default_factory=list, description="Only models with one of these tags.")


class Models(Result):
    """The models of a bank."""

    models: list[Model] = Field(description="By id.")


@operation("model.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListModels) -> Models:
    """List the mental models of a bank, without their texts."""

    async def body(tx: Tx) -> list[Model]:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return []
        change = await mental_models.last_change(tx, ctx.org, bank.id)
        found = await mental_models.listed(tx, ctx.org, bank.id)
        kept = [one for one in found if not given.tags or set(given.tags) & set(one.tags)]
        return [_shown(one, await mental_models.current(tx, one), change) for one in kept]

    return Models(models=await ctx.read(body))


class OneModel(InBank):
    """Which model."""

    id: Clean = Field(min_length=1, max_length=200, description="The id of the mental model.")


async def _one(tx: Tx, ctx: Ctx, given: OneModel) -> tuple[banks.Bank, mental_models.Model]:
    """The model meant; another bank's is as unknown as none."""
    bank = await bank_ops.found(tx, ctx, given.bank)
    model = await mental_models.get(tx, ctx.org, bank.id, given.id) if bank else None
    if bank is None or model is None:
        raise NotFound(f"No mental model {given.id!r} in this bank. Use list_mental_models to see the ids.")
    return bank, model


@operation("model.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: OneModel) -> ModelText:
    """Retrieve one mental model with its text, and what each sentence rests on."""
    return await _told(ctx, given, None)


class OneVersion(OneModel):
    """Which model, and which text of it."""

    version: int = Field(ge=1, le=2**31, description="Number of the version.")


@operation("model.version", effect=Effect.READ, scope="memory:read")
async def version(ctx: Ctx, given: OneVersion) -> ModelText:
    """Retrieve one mental model with an earlier version of its text."""
    return await _told(ctx, given, given.version)


async def _told(ctx: Ctx, given: OneModel, number: int | None) -> ModelText:
    async def body(tx: Tx) -> ModelText:
        bank, model = await _one(tx, ctx, given)
        made = await mental_models.current(tx, model, number)
        if number is not None and made is None:
            raise NotFound(f"Version {number} of this mental model is not kept.")
        shown = _shown(model, made, await mental_models.last_change(tx, ctx.org, bank.id))
        told = made.sentences if made else ()
        return ModelText(
            **shown.model_dump(),
            content=made.text if made else "",
            version=made.version if made else 0,
            versions=await mental_models.count(tx, model),
            evidence=[Resting(sentence=one.text, memories=[str(id) for id in one.memories]) for one in told],
        )

    shown = await ctx.read(body)
    handed_out.made(ctx, bank_ops.wanted(ctx, given.bank)[0], shown.content)
    return shown


class MadeVersion(Result):
    """A text of a model, without what it says."""

    version: int = Field(description="Its number, from 1.")
    made_at: str = Field(description="When it was made, ISO 8601.")
    made_by: str = Field(description="The language model that made it, or `rules`.")


class ModelVersions(Result):
    """The kept texts of a model."""

    versions: list[MadeVersion] = Field(description="Newest first.")


@operation("model.versions", effect=Effect.READ, scope="memory:read")
async def versions(ctx: Ctx, given: OneModel) -> ModelVersions:
    """List the kept versions of a mental model's text, newest first; model.version reads one of them."""

    async def body(tx: Tx) -> list[tuple[int, int, str]]:
        _, model = await _one(tx, ctx, given)
        return await mental_models.made(tx, model)

    found = [
        MadeVersion(version=number, made_at=clock.iso(at), made_by=maker) for number, at, maker in await ctx.read(body)
    ]
    return ModelVersions(versions=found)


class UpdateModel(OneModel):
    """What to change; what is left out stays."""

    name: Filled | None = Field(None, max_length=200, description="New name.")
    source_query: Filled | None = Field(None, max_length=20_000, description="New query; the text follows at refresh.")
    tags: Tags | None = Field(None, description="New tags.")
    max_tokens: MaxTokens | None = Field(None, description="New maximum of tokens; the text follows at refresh.")
    refresh_after_consolidation: bool | None = Field(None, description="Whether to make it anew after consolidation.")


@operation("model.update", effect=Effect.MUTATE, scope="memory:write")
async def update(ctx: Ctx, given: UpdateModel) -> Model:
    """Change a mental model's name, query, tags or settings; its text stays until it is refreshed."""
    wanted = given.model_dump(exclude={"bank", "id"}, exclude_none=True)
    wanted |= {key: secrets.redacted(wanted[key]).text for key in ("name", "source_query") if key in wanted}
    wanted |= {"tags": tuple(dict.fromkeys(wanted["tags"]))} if "tags" in wanted else {}
    if not wanted:
        raise BadInput("Nothing to change: give a name, source_query, tags, max_tokens or the refresh trigger.")

    async def body(tx: Tx) -> Changed[Model]:
        bank, before = await _one(tx, ctx, given)
        after = replace(before, **wanted, updated_at=ctx.now)
        await mental_models.update(tx, after)
        version = await mental_models.current(tx, after)
        asks_otherwise = (before.source_query, before.max_tokens) != (after.source_query, after.max_tokens)
        if version and asks_otherwise:
            await mental_models.seen(tx, version, 0)
            version = replace(version, seq=0)
        change = await mental_models.last_change(tx, ctx.org, bank.id)
        return Changed(_shown(after, version, change), bank.id, [], given.model_dump_json())

    return await ctx.change(body)


@operation("model.refresh", effect=Effect.MUTATE, scope="memory:write")
async def refresh(ctx: Ctx, given: OneModel) -> Asked:
    """Make a mental model's text anew from the latest memories, in the background; the earlier text stays a version."""

    async def body(tx: Tx) -> Changed[Asked]:
        bank, model = await _one(tx, ctx, given)
        job = await mental_models.asked(tx, ctx.store, ctx.org, bank.id, model.id, ctx.now)
        return Changed(Asked(id=model.id, operation_id=str(job)), bank.id, [job])

    return await ctx.change(body)


@operation("model.delete", effect=Effect.DESTRUCTIVE, scope="memory:delete")
async def delete(ctx: Ctx, given: OneModel) -> Receipt:
    """Permanently delete a mental model with every version of its text; leaves a receipt."""

    async def body(tx: Tx) -> Changed[Receipt]:
        bank, model = await _one(tx, ctx, given)
        await mental_models.delete(tx, ctx.org, bank.id, model.id)
        receipt = await receipts.leave(tx, ctx, bank.id, {"models": 1}, [model.id])
        return Changed(receipt, bank.id, [], model.id)

    return await ctx.change(body)
