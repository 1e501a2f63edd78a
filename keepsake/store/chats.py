"""Chats: conversations of `ask`, each message as it was said, and which memories an answer was made from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from keepsake.store.engine import Row, Tx, Value

#: Stands in the place of an answer when something it was made from is forgotten.
REMOVED = "(This answer was removed: something that it was made from has been forgotten.)"
_OF = "org = :org AND bank = :bank"
_CHAT = "id, title, source, author, messages, created_at, updated_at"
_MESSAGE = "chat, n, role, text, citations, made_by, at"


@dataclass(frozen=True, slots=True)
class Chat:
    """One conversation."""

    id: int
    title: str
    source: str
    author: str
    messages: int
    created_at: int
    updated_at: int


@dataclass(frozen=True, slots=True)
class Message:
    """What someone said in it; `n` counts from 1."""

    chat: int
    n: int
    role: str
    text: str
    at: int
    citations: Sequence[object] = ()
    made_by: str = ""


def _message(row: Row) -> Message:
    cited = json.loads(row["citations"])
    return Message(row["chat"], row["n"], row["role"], row["text"], row["at"], tuple(cited), row["made_by"])


async def insert(tx: Tx, org: int, bank: int, chat: Chat) -> None:
    """Begin a conversation."""
    await tx.run(
        f"INSERT INTO chats (org, bank, {_CHAT}) VALUES (:org, :bank, :id, :title, :source, :author, :messages,"
        " :created_at, :updated_at)",
        org=org,
        bank=bank,
        id=chat.id,
        title=chat.title,
        source=chat.source,
        author=chat.author,
        messages=chat.messages,
        created_at=chat.created_at,
        updated_at=chat.updated_at,
    )


async def get(tx: Tx, org: int, bank: int, id: int) -> Chat | None:
    """One conversation, without what was said."""
    row = await tx.one(f"SELECT {_CHAT} FROM chats WHERE {_OF} AND id = :id", org=org, bank=bank, id=id)
    return Chat(**row) if row else None


async def page(tx: Tx, org: int, bank: int, limit: int, offset: int) -> tuple[list[Chat], int]:
    """Conversations, the last continued first, and how many there are in all."""
    rows = await tx.all(
        f"SELECT {_CHAT} FROM chats WHERE {_OF} ORDER BY updated_at DESC, id DESC LIMIT :limit OFFSET :offset",
        org=org,
        bank=bank,
        limit=limit,
        offset=offset,
    )
    total = await tx.one(f"SELECT count(*) AS total FROM chats WHERE {_OF}", org=org, bank=bank)
    return [Chat(**row) for row in rows], int(total["total"]) if total else 0


async def messages(tx: Tx, org: int, bank: int, chat: int, limit: int, before: int) -> list[Message]:
    """The last messages of a conversation before a number, in their order."""
    rows = await tx.all(
        f"SELECT {_MESSAGE} FROM chat_messages WHERE {_OF} AND chat = :chat AND n < :before"
        " ORDER BY n DESC LIMIT :limit",
        org=org,
        bank=bank,
        chat=chat,
        before=before,
        limit=limit,
    )
    return [_message(row) for row in reversed(rows)]


async def recent(tx: Tx, org: int, bank: int, limit: int) -> list[Message]:
    """What was said last in a bank, whatever the conversation, newest first."""
    rows = await tx.all(
        f"SELECT {', '.join(f'm.{name}' for name in _MESSAGE.split(', '))} FROM (SELECT id, updated_at FROM chats"
        f" WHERE {_OF} ORDER BY updated_at DESC, id DESC LIMIT :limit) AS c JOIN chat_messages m ON m.org = :org"
        " AND m.bank = :bank AND m.chat = c.id ORDER BY m.at DESC, m.chat DESC, m.n DESC LIMIT :limit",
        org=org,
        bank=bank,
        limit=limit,
    )
    return [_message(row) for row in rows]


async def add(tx: Tx, org: int, bank: int, chat: int, said: Sequence[Message], evidence: Sequence[int]) -> int | None:
    """Add messages behind the others, the last of them made from these memories; None when the chat is gone."""
    row = await tx.one(
        f"UPDATE chats SET messages = messages + :more, updated_at = :at WHERE {_OF} AND id = :id RETURNING messages",
        org=org,
        bank=bank,
        id=chat,
        more=len(said),
        at=said[-1].at,
    )
    if row is None:
        return None
    first = int(row["messages"]) - len(said) + 1
    rows: list[dict[str, Value]] = [
        {
            "org": org,
            "bank": bank,
            "chat": chat,
            "n": n,
            "role": one.role,
            "text": one.text,
            "citations": json.dumps(list(one.citations), ensure_ascii=False),
            "made_by": one.made_by,
            "at": one.at,
        }
        for n, one in enumerate(said, first)
    ]
    await tx.many(
        f"INSERT INTO chat_messages (org, bank, {_MESSAGE}) VALUES (:org, :bank, :chat, :n, :role, :text, :citations,"
        " :made_by, :at)",
        rows,
    )
    await tx.many(
        "INSERT INTO chat_evidence (org, bank, memory, chat, n) VALUES (:org, :bank, :memory, :chat, :n)"
        " ON CONFLICT (org, bank, memory, chat, n) DO NOTHING",
        [{"org": org, "bank": bank, "memory": id, "chat": chat, "n": int(row["messages"])} for id in evidence],
    )
    return int(row["messages"])


async def forget(tx: Tx, org: int, bank: int, memories: Sequence[int]) -> None:
    """Take away the answers that were made from these memories."""
    values: dict[str, Value] = {"org": org, "bank": bank, "ids": list(memories)}
    await tx.run(
        f"UPDATE chat_messages SET text = :text, citations = '[]' WHERE {_OF} AND EXISTS (SELECT 1 FROM chat_evidence e"
        " WHERE e.org = chat_messages.org AND e.bank = chat_messages.bank AND e.chat = chat_messages.chat"
        " AND e.n = chat_messages.n AND e.memory = ANY_INT(:ids))",
        text=REMOVED,
        **values,
    )
    await tx.run(f"DELETE FROM chat_evidence WHERE {_OF} AND memory = ANY_INT(:ids)", **values)


async def delete(tx: Tx, org: int, bank: int, id: int) -> None:
    """Remove a conversation with all that was said."""
    values: dict[str, Value] = {"org": org, "bank": bank, "id": id}
    for table in ("chat_evidence", "chat_messages"):
        await tx.run(f"DELETE FROM {table} WHERE {_OF} AND chat = :id", **values)
    await tx.run(f"DELETE FROM chats WHERE {_OF} AND id = :id", **values)
