"""Packages that import a name when it is first used, and list their names once: in `__init__.pyi`.

Type checkers and editors read that file beside an `__init__.py`. The package also reads it, when a name, or the list of
all names, is first requested; `import workbench` itself reads nothing and stays instant.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions `__getattr__` and `__dir__` of a package, which return the names in its `__init__.pyi`.

    `__getattr__` also returns `__all__`.

    Args:
      package: Its `__name__`.
    """

    @functools.cache
    def homes() -> dict[str, tuple[str, str]]:
        """The module of each name, and its name there. A module of the package itself is (package, its name)."""
        import ast  # the first use of a name can wait for it; `import workbench` cannot

        stub = os.path.splitext(str(sys.modules[package].__file__))[0] + ".pyi"
        with open(stub, encoding="utf-8") as file:
            tree = ast.parse(file.read(), stub)
        return {
            str(alias.asname): (str(node.module), alias.name)
            for node in tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        # Python asks every package for names such as `__path__`, which are in no stub.
        home = None if name.startswith("__") else homes().get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, there = home
        if module == package:
            return importlib.import_module(f"{package}.{there}")
        value = getattr(importlib.import_module(module), there)
        setattr(sys.modules[package], name, value)  # the next use finds it at once
        return value

    def names() -> list[str]:
        return sorted(homes())

    return get, names
