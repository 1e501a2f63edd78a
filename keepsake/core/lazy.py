"""Heavy modules, declared at the top of a file and loaded at first use.

Starting a stdio server must stay cheap, so numpy, models and the like wait until something needs them.
"""

import importlib
from types import ModuleType
from typing import Any


class Lazy(ModuleType):
    """Stands in for a module until an attribute of it is asked for."""

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), attribute)
        setattr(self, attribute, value)
        return value


def lazy(name: str) -> ModuleType:
    """Declare a module that is imported at its first use."""
    return Lazy(name)
