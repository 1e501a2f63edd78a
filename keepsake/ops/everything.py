"""Every module that declares operations, so that the registry is whole."""

from keepsake.core.operation import REGISTRY

# Imported for what they declare.
from keepsake.ops import (  # noqa: F401
    aliases,
    anomalies,
    approvals,
    ask,
    audit,
    banks,
    checks,
    clients,
    context,
    directives,
    documents,
    grants,
    importing,
    incidents,
    jobs,
    keys,
    memory,
    mental_models,
    proposals,
    records,
    reflect,
    scan,
    score,
    searching,
    signing_in,
    status,
    sync,
    tags,
    timeline,
    transcripts,
    truth,
    usage,
    users,
)

__all__ = ["REGISTRY"]
