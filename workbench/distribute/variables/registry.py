"""VariableRegistry: the variables of a strategy, and what of them the replicas may forget."""

from __future__ import annotations

import weakref
from typing import Generic, Protocol, TypeVar

from workbench.distribute.variables.variable_description import VariableDescription


class Described(Protocol):
    """A variable as its registry knows it."""

    description: VariableDescription


V = TypeVar("V", bound=Described)


class VariableRegistry(Generic[V]):
    """Knows the variables that live on the replicas, without keeping them, except those that nobody else can."""

    def __init__(self) -> None:
        self._variables: weakref.WeakValueDictionary[str, V] = weakref.WeakValueDictionary()
        self._held: list[V] = []
        self._forgotten: list[str] = []

    @property
    def variables(self) -> tuple[V, ...]:
        """The variables in use, in order of creation."""
        return tuple(self._variables.values())

    def __contains__(self, variable: Described) -> bool:
        return variable.description.key in self._variables

    def add(self, variable: V) -> None:
        """Remembers a variable for as long as it lives."""
        key = variable.description.key
        self._variables[key] = variable
        # The next new variable's message informs the replicas, because a finalizer may run at any point of any
        # thread.
        weakref.finalize(variable, self._forgotten.append, key).atexit = False

    def hold(self, variable: V) -> None:
        """Keeps a variable that a replica function created for as long as the strategy: only replicas know it."""
        self._held.append(variable)

    def clear(self) -> None:
        """All replicas were lost, and the values of all variables with them."""
        self._variables.clear()

    def take_forgotten(self) -> list[str]:
        """Keys of variables that the replicas were not told of yet that nobody uses them any more."""
        return [self._forgotten.pop() for _ in range(len(self._forgotten))]
