"""Every module that declares operations, so that the registry is whole."""

from keepsake.core.operation import REGISTRY
from keepsake.ops import (
    audit,
    banks,
    directives,
    documents,
    jobs,
    keys,
    memory,
    mental_models,
    reflect,
    scan,
    status,
    tags,
    truth,
)

MODULES = (audit, banks, directives, documents, jobs, keys, memory, mental_models, reflect, scan, status, tags, truth)
__all__ = ["MODULES", "REGISTRY"]
