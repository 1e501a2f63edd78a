"""The hindsight dialect: memories, models, directives, documents, operations, tags, banks; single- and multi-bank."""

from dataclasses import replace

from keepsake.ops import banks, directives, documents, jobs, memory, mental_models, purging, reflect, tags
from keepsake.tools.dialect import Dialect, Takes, Tool, table, with_bank
from keepsake.tools.hindsight_banks import Bank, Banks, BankStats, CreateBank, GetBank, ListBanks, UpdateBank
from keepsake.tools.hindsight_directives import (
    CreateDirective,
    DeletedDirective,
    Directive,
    Directives,
    ListDirectives,
    OneDirective,
)
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
from keepsake.tools.hindsight_models import (
    CreateMentalModel,
    ListMentalModels,
    MentalModel,
    MentalModelAsked,
    MentalModelDeleted,
    MentalModels,
    OneMentalModel,
    UpdateMentalModel,
)
from keepsake.tools.hindsight_operations import CancelledOperation, ListOperations, OneOperation, Operation, Operations
from keepsake.tools.hindsight_reflect import Reflect, Reflected

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
    Tool(
        "reflect",
        reflect.reflect,
        Reflect,
        Reflected,
        "Use it for questions like `What should I do?` rather than `What did I say?`.",
    ),
    Tool("create_mental_model", mental_models.create, CreateMentalModel, MentalModelAsked),
    Tool("list_mental_models", mental_models.list_, ListMentalModels, MentalModels),
    Tool("get_mental_model", mental_models.get, OneMentalModel, MentalModel),
    Tool("update_mental_model", mental_models.update, UpdateMentalModel, MentalModel),
    Tool("delete_mental_model", mental_models.delete, OneMentalModel, MentalModelDeleted),
    Tool("refresh_mental_model", mental_models.refresh, OneMentalModel, MentalModelAsked),
    Tool("list_directives", directives.list_, ListDirectives, Directives),
    Tool("create_directive", directives.create, CreateDirective, Directive),
    Tool("delete_directive", directives.delete, OneDirective, DeletedDirective),
    Tool("list_memories", memory.list_, ListMemories, Facts),
    Tool("get_memory", memory.get, OneMemory, Fact),
    Tool("delete_memory", memory.forget, OneMemory, Deleted),
    Tool("list_documents", documents.list_, ListDocuments, Documents),
    Tool("get_document", documents.get, OneDocument, Document),
    Tool("delete_document", documents.delete, OneDocument, Deleted),
    Tool("list_operations", jobs.list_, ListOperations, Operations),
    Tool("get_operation", jobs.get, OneOperation, Operation),
    Tool("cancel_operation", jobs.cancel, OneOperation, CancelledOperation),
    Tool("list_tags", tags.list_, ListTags),
    Tool("get_bank", banks.get, GetBank, Bank),
    Tool("update_bank", banks.update, UpdateBank, Bank),
    Tool("delete_bank", banks.delete, GetBank, Deleted),
    Tool("clear_memories", purging.clear, ClearMemories, Deleted),
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
