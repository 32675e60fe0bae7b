"""Faults to learn from: a replica function that misbehaves on one replica, in a known way."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from workbench import faults, tree
from workbench.distribute.function import Function, plain_function
from workbench.errors import FailedPreconditionError, InvalidArgumentError
from workbench.runtime.replica.env import ReplicaEnv, current_env

_COLLECTIVES: Final = frozenset(
    {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "barrier"}
)

_LIBRARIES: Final = ("numpy", "cupy", "torch", "jax", "jaxlib")


@dataclass(frozen=True, slots=True)
class Slow:
    """The replica sleeps before its function begins, so that the others wait for it in the first collective.

    Attributes:
      replica: The replica.
      seconds: How long it sleeps.
    """

    replica: int
    seconds: float = 0.05


@dataclass(frozen=True, slots=True)
class NaNInput:
    """The first element of each floating array among the replica's arguments is NaN, as from a broken file.

    Attributes:
      replica: The replica.
    """

    replica: int


@dataclass(frozen=True, slots=True)
class SkippedCollective:
    """The replica skips a collective and continues with its own values.

    Attributes:
      replica: The replica.
      nth: The number of the collective in the function, from 1.
    """

    replica: int
    nth: int = 1


@dataclass(frozen=True, slots=True)
class OtherCollective:
    """The replica calls a barrier where its function calls a collective.

    Attributes:
      replica: The replica.
      nth: The number of the collective in the function, from 1.
    """

    replica: int
    nth: int = 1


@dataclass(frozen=True, slots=True)
class Killed:
    """The replica's process is killed (SIGKILL) when it reaches a collective, with all its replicas.

    Not allowed if replicas run in the notebook's process.

    Attributes:
      replica: The replica.
      nth: The number of the collective in the function, from 1.
    """

    replica: int
    nth: int = 1


Fault = Slow | NaNInput | SkippedCollective | OtherCollective | Killed


def inject(fn: Callable[..., Any], *injected: Fault) -> Callable[..., Any]:
    """Returns a replica function that does what `fn` does, with faults; `fn` itself does not change.

    A fault happens each time the function runs, and nowhere else in the cluster. Traced functions cannot have faults,
    because all replicas run one program.

    Args:
      fn: A replica function, plain or a `wb.function`; the result is of the same kind.
      *injected: The faults, each with its replica.

    Raises:
      InvalidArgumentError: if a replica or a collective does not exist.

    >>> strategy.run(wb.testing.inject(step, wb.testing.Slow(replica=1)), args=(batch,))  # doctest: +SKIP
    """
    for fault in injected:
        if fault.replica < 0 or getattr(fault, "nth", 1) < 1:
            raise InvalidArgumentError(f"{fault}: replicas count from 0, collectives from 1")
    faulty = FaultyFunction(plain_function(fn), injected, os.getpid())
    return Function(faulty) if isinstance(fn, Function) else faulty


class FaultyFunction:
    """A replica function with faults, from `inject`.

    Attributes:
      fn: The function.
      injected: The faults.
      driver_pid: The process of the notebook, which must not be killed.
    """

    def __init__(self, fn: Callable[..., Any], injected: tuple[Fault, ...], driver_pid: int) -> None:
        self.fn = fn
        self.injected = injected
        self.driver_pid = driver_pid
        functools.update_wrapper(self, fn)

    def __reduce__(self) -> tuple[Any, ...]:
        return FaultyFunction, (self.fn, self.injected, self.driver_pid)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One run on one replica; outside replicas, the plain function."""
        env = current_env()
        if env is None:
            return self.fn(*args, **kwargs)
        own = self._checked(env)
        for fault in own:
            if isinstance(fault, Slow):
                time.sleep(fault.seconds)
            elif isinstance(fault, NaNInput):
                args, kwargs = _with_nan((args, kwargs))
        in_collectives = {fault.nth: fault for fault in own if not isinstance(fault, Slow | NaNInput)}
        if not in_collectives:
            return self.fn(*args, **kwargs)
        communicator = env.communicator
        faulty = _FaultyCommunicator(communicator, in_collectives)
        env.communicator = faulty  # attributes that it lacks come from the other
        try:
            result = self.fn(*args, **kwargs)
        finally:
            env.communicator = communicator
        if left := [fault for nth, fault in in_collectives.items() if nth > faulty.calls]:
            raise InvalidArgumentError(
                f"{left[0]} did not happen: the function asked for {faulty.calls} collectives on that replica"
            )
        return result

    def _checked(self, env: ReplicaEnv) -> list[Fault]:
        """The faults for this replica."""
        if env.traced:
            raise FailedPreconditionError(
                "faults cannot be injected into a traced function: it is one program for all replicas; use a strategy "
                "on CPU or GPU devices"
            )
        beyond = [fault for fault in self.injected if fault.replica >= env.size]
        if beyond and env.rank == 0:
            raise InvalidArgumentError(f"{beyond[0]}: there are {env.size} replicas, numbered from 0")
        own = [fault for fault in self.injected if fault.replica == env.rank]
        if any(isinstance(fault, Killed) for fault in own) and os.getpid() == self.driver_pid:
            raise FailedPreconditionError(
                f"replica {env.rank} lives in the notebook's own process, which will not be killed; make the cluster "
                f"with wb.connect(replicas={env.size}), which gives each replica a process"
            )
        return own


class _FaultyCommunicator:
    """A communicator that counts its collectives and replaces some of them."""

    def __init__(
        self, communicator: Any, at: dict[int, SkippedCollective | OtherCollective | Killed]
    ) -> None:
        self._communicator = communicator
        self._at = at
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._communicator, name)
        return functools.partial(self._asked, found) if name in _COLLECTIVES else found

    def _asked(self, collective: Callable[..., Any], *args: Any, **options: Any) -> Any:
        self.calls += 1
        match self._at.get(self.calls):
            case Killed():
                faults.act("kill", "testing.collective")
            case SkippedCollective():
                return args[0] if args else None
            case OtherCollective():
                return self._communicator.barrier(site=options.get("site", ""))
        return collective(*args, **options)


def _with_nan(arguments: Any) -> Any:
    """The nested structure with a NaN in each floating array. Copies the arrays, which others may share."""
    poisoned = 0

    def spoilt(leaf: Any) -> Any:
        nonlocal poisoned
        library = "" if isinstance(leaf, np.generic) else type(leaf).__module__.partition(".")[0]
        if library not in _LIBRARIES or "float" not in str(getattr(leaf, "dtype", "")) or 0 in leaf.shape:
            return leaf
        poisoned += 1
        first = (0,) * leaf.ndim
        if library in ("jax", "jaxlib"):  # it is read-only
            return leaf.at[first].set(np.nan)
        copy = leaf.detach().clone() if library == "torch" else leaf.copy()
        copy[first] = np.nan
        return copy

    result = tree.map(spoilt, arguments)
    if not poisoned:
        raise InvalidArgumentError("NaNInput needs a floating array among the arguments of the function")
    return result
