"""VariableRegistry: the variables of a strategy, and those that the replicas may drop."""

from __future__ import annotations

import weakref
from typing import Generic, Protocol, TypeVar

from workbench.distribute.variables.variable_description import VariableDescription


class Described(Protocol):
    """A variable from the point of view of its registry."""

    description: VariableDescription


V = TypeVar("V", bound=Described)


class VariableRegistry(Generic[V]):
    """Knows the variables on the replicas without keeping them alive, except those that nothing else can keep."""

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
        """Adds a variable, for as long as it lives."""
        key = variable.description.key
        self._variables[key] = variable
        # The message of the next new variable informs the replicas, because a finalizer may run at any point in any
        # thread.
        weakref.finalize(variable, self._forgotten.append, key).atexit = False

    def hold(self, variable: V) -> None:
        """Keeps a variable that a replica function created as long as the strategy, because only replicas know it."""
        self._held.append(variable)

    def clear(self) -> None:
        """Called when all replicas were lost, and with them the values of all variables."""
        self._variables.clear()

    def take_forgotten(self) -> list[str]:
        """Takes the keys of unused variables that the replicas have not yet been asked to drop."""
        return [self._forgotten.pop() for _ in range(len(self._forgotten))]
