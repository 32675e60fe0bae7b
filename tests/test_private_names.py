"""No class of the package reuses a private name of its bases: a new release of a base may take the name.

What a class of the package takes is read in its source: the names that its body binds, and the attributes that its
methods set on `self`. What a base takes is what it has and what its compiled methods set, with the Python and libraries
that run this test.
"""

from __future__ import annotations

import ast
import dis
import functools
import importlib
import inspect
import pkgutil
import threading
from collections.abc import Iterator
from types import CodeType, ModuleType

import workbench
from workbench.errors import BackendUnavailable

OPTIONAL = {"cupy", "cupyx", "IPython", "jax", "jupyter_server", "panel", "torch"}

OVERRIDES = {
    # Private names that a base class offers to its subclasses.
    ("JSComponent", "_esm"): "Panel documents it",
    ("JSComponent", "_handle_msg"): "Panel documents it",
    ("ReactiveESM", "_esm"): "Panel documents it",
    ("ReactiveESM", "_handle_msg"): "Panel documents it",
    ("ArrayLike", "_array"): "its subclasses have to give it",
    ("DatasetText", "_element_spec"): "its subclass has to give it",
    ("DescribedStrategy", "_describe"): "strategies begin with more than their description",
    ("DistributedValues", "_components"): "a subclass finds them later",
    ("Strategy", "_prepare"): "strategies compile replica functions in their own ways",
    ("VariableLike", "_identity"): "its subclasses have to give it",
    ("VariableLike", "_scatter_nd"): "variables of a strategy refuse it",
    ("VariableLike", "_update"): "its subclasses have to give it",
    # multiprocessing itself defines its start methods in this way; tests of the fork server watch it.
    ("Popen", "_fds"): "the process is forked elsewhere",
    ("Popen", "_launch"): "the process is forked elsewhere",
    ("ForkServerProcess", "_Popen"): "the process is forked elsewhere",
    ("BaseProcess", "_Popen"): "the process is forked elsewhere",
    # Undocumented, but the only way to change what Dask does there; tests of lost workers watch it.
    ("Nanny", "_on_worker_exit_sync"): "tells how a worker process ended",
    ("SpecCluster", "_update_worker_status"): "leaves workers to their nannies",
    ("Cluster", "_update_worker_status"): "leaves workers to their nannies",
}
"""(base, private name) that subclasses here may bind, and why."""


def modules() -> Iterator[ModuleType]:
    """Every module of the package, but those whose optional library is not installed."""
    yield workbench
    for found in pkgutil.walk_packages(workbench.__path__, "workbench."):
        try:
            yield importlib.import_module(found.name)
        except (ImportError, BackendUnavailable) as error:
            missing = error.__cause__ if isinstance(error, BackendUnavailable) else error
            if not isinstance(missing, ImportError) or (missing.name or "").split(".")[0] not in OPTIONAL:
                raise


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("_")


def taken_in_source(definition: ast.ClassDef) -> set[str]:
    """The private names that a class body binds, and those that its methods set on `self`."""
    names = set()
    for statement in definition.body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
                names.update(
                    node.attr
                    for node in ast.walk(statement)
                    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                    if isinstance(node.value, ast.Name) and node.value.id == "self"
                )
            case ast.Assign(targets=targets):
                names.update(
                    node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
                )
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if is_private(name)}


def codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@functools.cache
def taken_by(base: type) -> frozenset[str]:
    """The private names that a class has, and those of the attributes that its methods set."""
    names = set(vars(base)) | set(inspect.get_annotations(base))
    for member in vars(base).values():
        for function in (member, *(getattr(member, part, None) for part in ("__func__", "fget", "fset"))):
            if inspect.isfunction(function):
                for code in codes(inspect.unwrap(function).__code__):
                    names.update(i.argval for i in dis.get_instructions(code) if i.opname == "STORE_ATTR")
    return frozenset(filter(is_private, names))


def classes(module: ModuleType) -> Iterator[tuple[type, ast.ClassDef]]:
    """The classes that a module defines outside functions, with their source."""

    def below(body: list[ast.stmt], namespace: dict[str, object]) -> Iterator[tuple[type, ast.ClassDef]]:
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                cls = namespace.get(statement.name)
                if isinstance(cls, type) and cls.__module__ == module.__name__:
                    yield cls, statement
                    yield from below(statement.body, dict(vars(cls)))

    yield from below(ast.parse(inspect.getsource(module)).body, vars(module))


def dotted(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def reused(cls: type, definition: ast.ClassDef) -> Iterator[str]:
    """Each private name of a base in another module that a class binds."""
    own = taken_in_source(definition)
    for base in cls.__mro__[1:]:
        if base is object or base.__module__ == cls.__module__:  # a name is private to its file
            continue
        for name in sorted(own & taken_by(base)):
            if (base.__name__, name) not in OVERRIDES:
                yield f"{dotted(cls)} binds {name}, which belongs to {dotted(base)}"


def test_no_class_reuses_a_private_name_of_a_base() -> None:
    found = [pair for module in modules() for pair in classes(module)]

    assert len(found) > 300
    assert [complaint for cls, definition in found for complaint in reused(cls, definition)] == []


class _Counting(threading.Thread):
    """What this test must find: Thread's own `_target` and `_started` are overwritten."""

    _target = 3

    def run(self) -> None:
        self._started, self._count = True, 1


def test_a_reused_name_is_found_in_the_body_and_in_methods() -> None:
    (definition,) = ast.parse(inspect.getsource(_Counting)).body
    assert isinstance(definition, ast.ClassDef)

    found = "\n".join(reused(_Counting, definition))

    assert "binds _started, which belongs to threading.Thread" in found
    assert "binds _target, which belongs to threading.Thread" in found
    assert "_count" not in found
