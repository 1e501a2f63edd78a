"""Every module that declares operations, so that the registry is whole."""

from keepsake.core.operation import REGISTRY
from keepsake.ops import audit, banks, documents, keys, memory, status, tags

MODULES = (audit, banks, documents, keys, memory, status, tags)
__all__ = ["MODULES", "REGISTRY"]
