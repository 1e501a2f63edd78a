"""Chats: the conversations of `ask`, kept where whoever asks wants it; they belong to the bank that was asked.

A chat is the asker's own log of what was said, not a fact: nothing finds it, and whoever may read the bank may read it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from keepsake.context import Changed, Ctx
from keepsake.core import clock, followup, ids
from keepsake.core.errors import BadInput, Conflict, NotFound
from keepsake.core.evidence import Evidence
from keepsake.core.inquiry import Inquiry
from keepsake.core.models import InBank, Receipt, Result
from keepsake.core.operation import Effect, operation
from keepsake.core.text import Clean
from keepsake.core.words import line
from keepsake.ops import banks as bank_ops
from keepsake.ops import receipts
from keepsake.ops.live import Project
from keepsake.store import banks, chats, history, memories
from keepsake.store.engine import Tx

#: Characters of a title, messages of one chat, and those of them that help to read the next question.
TITLE, MOST, READ = 100, 2_000, 20
ChatId = Annotated[Clean, Field(min_length=1, max_length=64)]


class Chat(Result):
    """A conversation without what was said."""

    chat_id: str = Field(description="Its id; give it to memory.ask to go on.")
    title: str = Field(description="Its first question.")
    source: str = Field(description="Where it was begun: web, cli or mcp.")
    author: str = Field(description="Who began it.")
    messages: int = Field(description="How many messages it has.")
    created_at: str = Field(description="When it was begun, ISO 8601.")
    updated_at: str = Field(description="When it was last continued, ISO 8601.")


class Message(Result):
    """One message."""

    n: int = Field(description="Its number, from 1.")
    role: Literal["user", "assistant"] = Field(description="user for a question, assistant for an answer.")
    text: str = Field(description="What was said.")
    citations: list[dict[str, object]] = Field(description="What an answer cites, as memory.ask gave it.")
    made_by: str | None = Field(None, description="The language model that answered, or `rules`.")
    at: str = Field(description="When, ISO 8601.")


class ListChats(InBank):
    """Which chats."""

    limit: int = Field(20, ge=1, le=100, description="Maximum number of results.")
    offset: int = Field(0, ge=0, le=10_000_000, description="Number of results to skip.")


class Chats(Result):
    """A page of chats, the last continued first."""

    chats: list[Chat] = Field(description="The last continued first.")
    total: int = Field(description="How many there are in all.")


@operation("chat.list", effect=Effect.READ, scope="memory:read")
async def list_(ctx: Ctx, given: ListChats) -> Chats:
    """List the conversations that were kept in a bank, the last continued first."""

    async def body(tx: Tx) -> Chats:
        bank = await bank_ops.found(tx, ctx, given.bank)
        if bank is None:
            return Chats(chats=[], total=0)
        rows, total = await chats.page(tx, ctx.org, bank.id, given.limit, given.offset)
        return Chats(chats=[_shown(row) for row in rows], total=total)

    return await ctx.read(body)


def _shown(chat: chats.Chat) -> Chat:
    return Chat(
        chat_id=str(chat.id),
        title=chat.title,
        source=chat.source,
        author=chat.author,
        messages=chat.messages,
        created_at=clock.iso(chat.created_at),
        updated_at=clock.iso(chat.updated_at),
    )


class OneChat(InBank):
    """Which chat."""

    id: ChatId = Field(description="Id of the chat.")


class GetChat(OneChat):
    """Which chat, and how much of it."""

    limit: int = Field(100, ge=1, le=500, description="Maximum number of messages: the last ones.")
    before: int | None = Field(None, ge=1, le=1 << 31, description="Only messages before this number.")


class WholeChat(Chat):
    """A conversation with what was said."""

    said: list[Message] = Field(description="Its messages, in their order.")


@operation("chat.get", effect=Effect.READ, scope="memory:read")
async def get(ctx: Ctx, given: GetChat) -> WholeChat:
    """Read one conversation: its questions, its answers and what they cite."""

    async def body(tx: Tx) -> WholeChat:
        bank, chat = await _one(tx, ctx, given)
        before = given.before or chat.messages + 1
        rows = await chats.messages(tx, ctx.org, bank.id, chat.id, given.limit, before)
        return WholeChat(**_shown(chat).model_dump(), said=[_message(row) for row in rows])

    return await ctx.read(body)


def _message(row: chats.Message) -> Message:
    return Message(
        n=row.n,
        role="assistant" if row.role == "assistant" else "user",
        text=row.text,
        citations=[one for one in row.citations if isinstance(one, dict)],
        made_by=row.made_by or None,
        at=clock.iso(row.at),
    )


async def _one(tx: Tx, ctx: Ctx, given: OneChat) -> tuple[banks.Bank, chats.Chat]:
    """The chat meant; another bank's is as unknown as none."""
    bank = await bank_ops.found(tx, ctx, given.bank)
    id = ids.parse(given.id)
    chat = await chats.get(tx, ctx.org, bank.id, id) if bank and id else None
    if bank is None or chat is None:
        raise _unknown(given.id)
    return bank, chat


def _unknown(id: str) -> NotFound:
    return NotFound(f"No chat {id!r} in this bank. List the chats to find its id, or ask without one.")


@operation("chat.delete", effect=Effect.DESTRUCTIVE, scope="memory:delete")
async def delete(ctx: Ctx, given: OneChat) -> Receipt:
    """Delete a conversation with all that was said in it; leaves a receipt."""

    async def body(tx: Tx) -> Changed[Receipt]:
        bank, chat = await _one(tx, ctx, given)
        await chats.delete(tx, ctx.org, bank.id, chat.id)
        receipt = await receipts.leave(tx, ctx, bank.id, {"messages": chat.messages}, [chat.id])
        return Changed(receipt, bank.id, [chat.id])

    return await ctx.change(body)


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation that a question goes on with, or begins."""

    ctx: Ctx
    project: Project
    #: None for one that is still to begin.
    chat: int | None
    #: What was asked in it before.
    earlier: Sequence[str] = ()

    def read(self, question: str) -> Inquiry:
        """Read a question as one who heard the earlier ones would."""
        return followup.read(question, self.earlier, self.ctx.now)

    async def noted(self, question: str, answer: "Answer") -> str:
        """Keep a question and its answer; tells the chat's id."""
        ctx, bank = self.ctx, self.project.bank.id
        said = [
            chats.Message(0, 0, "user", question, ctx.now),
            chats.Message(0, 0, "assistant", answer.text, ctx.now, answer.citations, answer.made_by),
        ]

        own = {int(one.memory) for one in answer.evidence if one.memory}

        async def body(tx: Tx) -> Changed[int]:
            # In line with whoever forgets: what has gone meanwhile must not be kept here.
            await banks.step(tx, ctx.org, bank)
            id = self.chat or await self._begun(tx, question)
            made_from = await _made_from(tx, ctx, self.project, answer.evidence)
            is_whole = len(await memories.fetched(tx, ctx.org, bank, sorted(own))) == len(own)
            kept = said if is_whole else [said[0], replace(said[1], text=chats.REMOVED, citations=())]
            if await chats.add(tx, ctx.org, bank, id, kept, made_from) is None:
                raise _unknown(str(id))
            return Changed(id, bank, [id])

        id = await ctx.change(body)
        return str(id)

    async def _begun(self, tx: Tx, question: str) -> int:
        ctx = self.ctx
        id, title = ctx.store.new_id(), line(question, TITLE)
        chat = chats.Chat(id, title, ctx.surface or "mcp", ctx.principal.name, 0, ctx.now, ctx.now)
        await chats.insert(tx, ctx.org, self.project.bank.id, chat)
        return id


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is kept."""

    text: str
    made_by: str
    citations: Sequence[object]
    #: All that it was made from, whether it is cited or not.
    evidence: Sequence[Evidence]


async def opened(ctx: Ctx, chat: str | None, projects: Sequence[Project]) -> Talk | None:
    """The conversation that is meant, or a new one; None where the bank has no writes yet, and nothing to tell."""
    if len(projects) > 1:
        # Whoever may read one of the banks would read there what the others say.
        raise BadInput("A chat belongs to one bank. Ask one bank, or leave out `chat_id` and `keep`.")
    if not projects:
        if chat is not None:
            raise _unknown(chat)
        return None
    project = projects[0]
    if chat is None:
        return Talk(ctx, project, None)

    async def body(tx: Tx) -> Talk:
        _, one = await _one(tx, ctx, OneChat(bank=project.bank.name, id=chat))
        if one.messages >= MOST:
            raise Conflict(f"This chat has {one.messages:,} messages, which is all that it takes. Begin another one.")
        said = await chats.messages(tx, ctx.org, project.bank.id, one.id, READ, one.messages + 1)
        return Talk(ctx, project, one.id, [each.text for each in said if each.role == "user"])

    return await ctx.read(body)


async def _made_from(tx: Tx, ctx: Ctx, project: Project, found: Sequence[Evidence]) -> list[int]:
    """Every memory that evidence was made from; the sections of one pull request are told as one."""
    own = {int(one.memory) for one in found if one.memory}
    keyed = [one for one in found if one.kind != "memory" and one.memory]
    kinds, keys = sorted({one.kind for one in keyed}), sorted({one.key for one in keyed})
    more = await history.under_keys(tx, project.scope(ctx.now), kinds, keys) if keyed else []
    return sorted({*own, *more})
