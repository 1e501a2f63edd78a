"""Every module that declares operations, so that the registry is whole."""

from keepsake.core.operation import REGISTRY

# Imported for what they declare.
from keepsake.ops import (  # noqa: F401
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

__all__ = ["REGISTRY"]
