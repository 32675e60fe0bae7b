"""Traces a user's function in a guarded environment, with errors that name the user's line."""

from __future__ import annotations

import dis
import linecache
import random
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import optree

from workbench.errors import TracingError, WorkbenchError
from workbench.runtime.comm.failure_report import is_users
from workbench.runtime.replica.env import ReplicaEnv, current_env, set_current_env
from workbench.runtime.shipping.captures import captured
from workbench.runtime.traced.env import TracedEnv, TracedStore
from workbench.runtime.traced.slices import Slices, expanded

if TYPE_CHECKING:
    from types import FrameType

    from workbench.backends.jax.mesh import ReplicaMesh
    from workbench.backends.jax.program import Compiled
    from workbench.runtime.traced.arguments import Arguments
    from workbench.runtime.traced.program import Traced

Shapes = dict[Any, tuple[tuple[int, ...], np.dtype[Any]]]
_tracing = threading.local()
_hook_installed = False


def trace_program(
    mesh: ReplicaMesh, traced: Traced, arguments: Arguments, variables: Shapes, env: ReplicaEnv
) -> Compiled:
    """Traces and compiles `traced` for `arguments`.

    Args:
      mesh: The devices.
      traced: The function, and how to compile it.
      arguments: Its arguments.
      variables: Shape and dtype of each variable that it may use.
      env: A replica of this worker.

    Raises:
      TracingError: if a compiled program cannot do what the function does; names the line and the alternative.
    """
    from workbench.backends.jax import program as jax_program

    body = _body(mesh, traced, arguments, env)
    try:
        return jax_program.trace(
            mesh,
            body,
            arguments.rows,
            arguments.shared,
            variables,
            checked=traced.checked,
            wanted=traced.dump,
        )
    except WorkbenchError as error:
        if isinstance(error, TracingError):
            raise _located(error, str(error), traced) from error
        error.args = (f"{error}{_place(error)}",)
        raise
    except Exception as error:
        text = jax_program.explain(error)
        if not text:
            raise
        raise _located(error, text, traced) from error


def _body(mesh: ReplicaMesh, traced: Traced, arguments: Arguments, env: ReplicaEnv) -> Any:
    from workbench.backends.jax.collectives import AxisCommunicator, choose
    from workbench.backends.jax.mesh import namespace

    def body(
        rows: Sequence[Any], shared: Sequence[Any], variables: dict[Any, Any]
    ) -> tuple[list[Any], Any, set[Any], dict[Any, Any]]:
        store = TracedStore(variables)
        inside = TracedEnv(
            env.devices,
            first_rank=env.rank,
            group_id=env.group_id,
            communicator=AxisCommunicator(mesh.size),
            store=store,
            choose=choose,
            xp=namespace(),
        )
        args, kwargs = _call(arguments, rows, shared, inside)
        outer = current_env()
        set_current_env(inside)  # type: ignore[arg-type]
        try:
            with _guarded(traced), traced.dump.tracing() if traced.dump else nullcontext():
                result = traced.program(inside, *args, **kwargs)
        finally:
            set_current_env(outer)
        leaves, structure = optree.tree_flatten(result, namespace="workbench")
        flat, plan = expanded(leaves)
        return flat, (structure, plan), set(store.read), store.written

    return body


def _call(
    arguments: Arguments, rows: Sequence[Any], shared: Sequence[Any], inside: TracedEnv
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns one replica's positional and keyword arguments."""
    if arguments.structure is None:
        return (), {}
    own, same = iter(rows), iter(shared)
    leaves = []
    valid: list[tuple[Any, Any]] = []
    for kind in arguments.kinds:
        match kind:
            case "row":
                leaves.append(next(own))
            case "padded":
                leaves.append(next(own))
                valid.append((leaves[-1], next(own)))
            case "shared":
                leaves.append(next(same))
            case Slices():
                leaves.append(kind.with_arrays(next(own), next(own)))
            case _:
                leaves.append(kind[1])
    inside.valid_rows = valid
    call: Any = optree.tree_unflatten(arguments.structure, leaves)
    return call  # type: ignore[no-any-return]


# -- what must not happen meanwhile -----------------------------------------------------------------------------


@contextmanager
def _guarded(traced: Traced) -> Iterator[None]:
    """Refuses files and the host's random numbers: tracing happens once, so every step would get the same values."""
    _install_hook()
    before = _random_states(traced)
    _tracing.active = True
    try:
        yield
    finally:
        _tracing.active = False
    for name, state in _random_states(traced).items():
        if name in before and before[name] != state:
            raise TracingError(
                f"random numbers of {name} were drawn while the function was traced: they would be the same in every "
                f"step and on every replica; pass a seed as an argument and use jax.random "
                f"(jax.random.fold_in(jax.random.key(seed), ctx.replica_id_in_sync_group))"
                f"{_place_of(traced.user_function, name.rpartition('.')[2])}"
            )


def is_tracing() -> bool:
    """Whether the calling thread is tracing a user's function."""
    return getattr(_tracing, "active", False)


def _random_states(traced: Traced) -> dict[str, str]:
    states = {"numpy.random": _digest(np.random.get_state())}
    code = getattr(traced.user_function, "__code__", None)
    if (
        code is not None
        and "random" in code.co_names
        and traced.user_function.__globals__.get("random") is random
    ):
        states["random"] = str(hash(random.getstate()))  # otherwise other threads may have drawn numbers
    for name, value in captured(traced.user_function):
        if isinstance(value, np.random.Generator):
            states[name] = repr(value.bit_generator.state)
        elif isinstance(value, np.random.RandomState):
            states[name] = _digest(value.get_state())
    return states


def _digest(state: Any) -> str:
    return str(hash((state[1].tobytes(), state[2:])))


def _install_hook() -> None:
    global _hook_installed
    if not _hook_installed:
        _hook_installed = True
        sys.addaudithook(_refuse_files)


def _refuse_files(event: str, args: tuple[Any, ...]) -> None:
    if event != "open" or not is_tracing():
        return
    frame: FrameType | None = sys._getframe(1)
    if frame is not None and is_users(frame.f_code.co_filename) and isinstance(args[0], str):
        raise TracingError(
            f"a file ({args[0]!r}) is opened in a traced function: that happens once, while it is traced, not in every "
            f"step; read it outside and pass its content as an argument"
        )


def _place_of(function: Any, name: str) -> str:
    """The line of `function` that first mentions `name`, in the form of a traceback."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    for instruction in dis.get_instructions(code):
        if instruction.argval == name and instruction.positions is not None and instruction.positions.lineno:
            return _shown(code.co_filename, instruction.positions.lineno, code.co_name)
    return ""


def _shown(file_name: str, line: int, function: str) -> str:
    linecache.checkcache(file_name)
    source = linecache.getline(
        file_name, line
    ).strip()  # "" for a notebook's cell, whose source only the notebook has
    place = f'\n  File "{file_name}", line {line}, in {function}'
    return f"{place}\n    {source}" if source else place


# -- naming the line --------------------------------------------------------------------------------------------


def _located(error: BaseException, text: str, traced: Traced) -> TracingError:
    """The error, followed by the innermost line of the user's own code."""
    name = getattr(traced.user_function, "__name__", "the function")
    return TracingError(f"{name} cannot be traced: {text}{_place(error)}")


def _place(error: BaseException) -> str:
    """The innermost line of the user's code that led to an error, in the form of a traceback; "" if there is none."""
    raised = [
        (frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(error.__traceback__)
    ]
    frames = [frame for frame in (*raised, *getattr(error, "frames", ())) if is_users(frame[0])]
    return _shown(*frames[-1]) if frames else ""
