"""Every module that declares operations, so that the registry is whole."""

from keepsake.core.operation import REGISTRY
from keepsake.ops import (
    aliases,
    audit,
    banks,
    context,
    directives,
    documents,
    importing,
    jobs,
    keys,
    memory,
    mental_models,
    records,
    reflect,
    scan,
    searching,
    status,
    tags,
    timeline,
    transcripts,
    truth,
)

MODULES = (
    aliases,
    audit,
    banks,
    context,
    directives,
    documents,
    importing,
    jobs,
    keys,
    memory,
    mental_models,
    records,
    reflect,
    scan,
    searching,
    status,
    tags,
    timeline,
    transcripts,
    truth,
)
__all__ = ["MODULES", "REGISTRY"]
