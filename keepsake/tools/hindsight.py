"""The hindsight dialect: banks, retain and recall, documents, tags; single-bank and multi-bank."""

from dataclasses import replace

from keepsake.ops import banks, documents, memory, tags
from keepsake.tools.dialect import Dialect, Takes, Tool, table, with_bank
from keepsake.tools.hindsight_banks import Bank, Banks, BankStats, CreateBank, GetBank, ListBanks, UpdateBank
from keepsake.tools.hindsight_documents import Document, Documents, ListDocuments, OneDocument
from keepsake.tools.hindsight_memories import (
    ClearMemories,
    Deleted,
    Fact,
    Facts,
    ListMemories,
    ListTags,
    OneMemory,
    Recall,
    Recalled,
    Retain,
    Retained,
)

_SINGLE = (
    Tool(
        "retain",
        memory.retain,
        Retain,
        Retained,
        "Use it when the user shares facts, preferences, decisions, goals or events worth knowing later.",
    ),
    Tool(
        "recall",
        memory.recall,
        Recall,
        Recalled,
        "Use it at the start of a conversation, before recommending, and whenever the user may have told it before.",
    ),
    Tool("list_memories", memory.list_, ListMemories, Facts),
    Tool("get_memory", memory.get, OneMemory, Fact),
    Tool("delete_memory", memory.forget, OneMemory, Deleted),
    Tool("list_documents", documents.list_, ListDocuments, Documents),
    Tool("get_document", documents.get, OneDocument, Document),
    Tool("delete_document", documents.delete, OneDocument, Deleted),
    Tool("list_tags", tags.list_, ListTags),
    Tool("get_bank", banks.get, GetBank, Bank),
    Tool("update_bank", banks.update, UpdateBank, Bank),
    Tool("delete_bank", banks.delete, GetBank, Deleted),
    Tool("clear_memories", memory.clear, ClearMemories, Deleted),
)
_STATS = Tool("get_bank_stats", banks.stats, GetBank, BankStats)


def _multi(tool: Tool) -> Tool:
    """The same tool with an optional bank."""
    assert tool.takes is not None and issubclass(tool.takes, Takes)
    takes = with_bank(tool.takes, "bank_id", "The bank to use; the default bank when left out")
    return replace(tool, takes=takes, bank_argument="bank_id")


INSTRUCTIONS = (
    "Keepsake is your long-term memory. Call `recall` before you answer anything the user may have told you before,"
    " and `retain` when you learn something worth knowing later. An empty recall means that nothing relevant is known;"
    " do not guess."
)
SINGLE = Dialect("hindsight", "Keepsake (hindsight, one bank)", INSTRUCTIONS, table(*_SINGLE))
MULTI = Dialect(
    "hindsight",
    "Keepsake (hindsight)",
    INSTRUCTIONS + " Every tool takes an optional `bank_id`; `list_banks` shows the banks.",
    table(
        *(_multi(tool) for tool in _SINGLE),
        Tool("list_banks", banks.list_, ListBanks, Banks),
        Tool("create_bank", banks.create, CreateBank, Bank, bank_argument="bank_id"),
        _multi(_STATS),
    ),
)
