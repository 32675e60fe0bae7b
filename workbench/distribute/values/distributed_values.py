"""Distributed values: one component per replica, kept where the replicas are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from workbench import tree
from workbench.arguments import several
from workbench.distribute.arrays.as_array import as_operand, describe
from workbench.distribute.copied_by_reference import CopiedByReference
from workbench.errors import CaptureError, InvalidArgumentError, TracingError
from workbench.runtime.driver.handle import Handle
from workbench.runtime.driver.merge_call import PerRank
from workbench.telemetry.formatting import printable

if TYPE_CHECKING:
    from workbench.runtime.driver.group import Group
    from workbench.runtime.replica.env import ReplicaEnv

_SHOWN_REPLICAS = 8
_SHOWN_ELEMENTS = 12
_SHOWN_CHARACTERS = 80


class DistributedValues(CopiedByReference):
    """One value per replica; immutable (as tf.distribute.DistributedValues).

    Its subclasses define how the components relate: `PerReplica`, `Mirrored`, and variables. Pass it to `run`, where
    every replica gets its own component, or fetch it to the notebook with `reduce`, `gather` or `local_results`.
    """

    __slots__ = ("__weakref__", "_components", "_handle")

    def __init__(self, components: Sequence[Any] | Handle) -> None:
        """Wraps a handle of values on replicas, or one value per replica, in replica order."""
        if type(components) is Handle:
            self._handle: Handle | None = components
            self._components: tuple[Any, ...] | None = None
        else:
            self._handle = None
            self._components = tuple(several(components, type(self).__name__, "[1.0, 2.0]"))  # type: ignore[arg-type]

    @property
    def values(self) -> tuple[Any, ...]:
        """The components, in replica order; waits for the step that makes them, and fetches them."""
        if self._components is not None:
            return self._components
        assert self._handle is not None
        return tuple(self._handle.values())

    @property
    def handle(self) -> Handle | None:
        """The runtime's handle, or None if the components were not sent to replicas."""
        return self._handle

    def __len__(self) -> int:
        if self._components is not None:
            return len(self._components)
        assert self._handle is not None
        return self._handle.size

    def values_for(self, size: int) -> tuple[Any, ...]:
        """The components, if there is one for each of `size` replicas.

        Raises:
          InvalidArgumentError: if it belongs to a strategy with another number of replicas.
        """
        if len(self) != size:
            components = "1 component" if len(self) == 1 else f"{len(self)} components"
            raise InvalidArgumentError(
                f"a {type(self).__name__} with {components} cannot be used by a strategy of {size} replicas; make it "
                f"with that strategy's distribute_values_from_function, dataset or run"
            )
        return self.values

    def own_component(self, env: ReplicaEnv) -> Any:
        """The component of one replica, or of the one that represents all while a program is traced.

        Raises:
          TracingError: if it was made of components between which a program cannot choose.
        """
        if not env.traced:
            return self.values_for(env.size)[env.rank]
        arrays = [as_operand(component) for component in self.values]
        if len({(array.shape, str(array.dtype)) for array in arrays}) > 1 or len(arrays) != env.size:
            raise TracingError(
                f"a {type(self).__name__} of {', '.join(map(describe, arrays))} in a traced merge function: "
                f"{env.size} replicas run one program, so there must be as many components, of one shape and dtype"
            )
        return env.xp.stack(arrays)[env.rank]

    def handle_for(self, group: Group) -> Handle:
        """The handle with which the replicas of `group` use the components; first sends them if necessary.

        Raises:
          InvalidArgumentError: if there is not one component for each replica.
        """
        handle = self._handle
        if handle is not None and handle.group is group:
            if handle.places is not group.places:
                self._handle = group.renewed(handle)
                return self._handle
            return handle
        fresh = group.put(self.values_for(group.size))
        if handle is None:
            self._handle = fresh
        return fresh

    def __repr__(self) -> str:
        name = type(self).__name__
        handle = self._handle if self._components is None else None
        if handle is not None and not handle.ready:
            return f"{name}:{{{len(self)} components, being computed}}"
        if handle is not None and handle.failed:
            return f"{name}:{{{len(self)} components, not computed: their step failed}}"
        lines = [f"  {rank}: {self.component_text(rank)}" for rank in range(min(len(self), _SHOWN_REPLICAS))]
        if len(self) > _SHOWN_REPLICAS:
            lines.append(f"  … {len(self) - _SHOWN_REPLICAS} more")
        return f"{name}:{{\n" + ",\n".join(lines) + "\n}"

    def component_text(self, rank: int) -> str:
        """A component in one line; with its value only if it is small and already here, because this does no I/O."""
        if self._components is not None:
            return _text(self._components[rank])
        handle = self._handle
        assert handle is not None
        if not handle.ready or handle.failed:
            return "being computed" if not handle.ready else "not computed: its step failed"
        if handle.is_here(rank):
            try:
                return _text(handle.value(rank))
            except CaptureError:
                return "value of a type that this process does not have"
        spec = handle.spec(rank)
        return "value on the replica" if spec is None else f"{spec[0]}[{','.join(map(str, spec[1]))}]"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._components is None:
            raise CaptureError(
                f"a {type(self).__name__} cannot be captured by a function that goes to the replicas, it holds the "
                f"values of all of them; pass it as an argument: strategy.run(fn, args=(value,))"
            )
        return type(self), (self._components,)


def _text(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is not None and int(np.prod(shape)) > _SHOWN_ELEMENTS:
        return f"{str(value.dtype).rpartition('.')[2]}[{','.join(map(str, shape))}]"
    try:
        text = printable(" ".join(repr(value).split()))
    except Exception as error:  # a foreign object's repr may raise any error
        text = f"<{type(value).__name__}, its repr raised {type(error).__name__}>"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


class PerReplica(DistributedValues):
    """Components that may differ and are never synchronised; `run` and distributed datasets return them."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # protocols look up such names
            raise AttributeError(name)
        raise AttributeError(
            f"a PerReplica has no attribute {name!r}: it stands for {len(self)} components on the replicas. Use it in "
            f"a function given to strategy.run, or look at the components: strategy.local_results(value)",
            name=name,
            obj=self,
        )


class Mirrored(DistributedValues):
    """Components known to be equal, so that any one represents all."""

    __slots__ = ()

    def own_component(self, env: ReplicaEnv) -> Any:
        """Any component."""
        return self.values[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        first = self._components[0] if self._components is not None else self._handle.value(0)  # type: ignore[union-attr]
        return np.array(first, dtype=dtype, copy=copy)


_OPERATORS = (
    "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift "
    "radd rsub rmul rtruediv rfloordiv rmod rdivmod rpow rmatmul rand ror rxor rlshift rrshift "
    "lt le gt ge neg pos abs invert float int complex index getitem iter contains array"
).split()


_WORDS = {
    "float": "float()",
    "int": "int()",
    "complex": "complex()",
    "index": "counting with it",
    "getitem": "indexing",
    "iter": "iteration",
    "contains": "`in`",
    "array": "np.asarray()",
}


def _refuse(operation: str) -> Any:
    def refused(self: PerReplica, *_: Any, **__: Any) -> NoReturn:
        kind = ValueError if operation == _WORDS["array"] else TypeError  # as in TensorFlow
        raise kind(
            f"{operation} is not possible on a PerReplica outside of a replica function: its {len(self)} components "
            f"live on the replicas and may differ. Compute in a function given to strategy.run, combine them with "
            f"strategy.reduce('SUM' or 'MEAN', value, axis=None) or strategy.gather(value, axis=0), or look at "
            f"strategy.local_results(value)"
        )

    return refused


for _name in _OPERATORS:
    setattr(PerReplica, f"__{_name}__", _refuse(_WORDS.get(_name, f"the operator {_name!r}")))


@dataclass(frozen=True, slots=True)
class PerReplicaSpec:
    """The specs of a PerReplica's components.

    Attributes:
      specs: One spec per replica.
    """

    specs: tuple[Any, ...]

    @property
    def shape(self) -> Any:
        """Shape of the component of replica 0."""
        return self.specs[0].shape

    @property
    def dtype(self) -> Any:
        """Dtype of the components."""
        return self.specs[0].dtype


def is_distributed(value: Any) -> bool:
    """Whether `value` has a component per replica."""
    return isinstance(value, DistributedValues)


def handed_over(value: Any, group: Group) -> Any:
    """The tree `value` with every distributed value replaced by its handle, for `Group.run`."""
    kind = type(value)
    if kind is PerReplica or kind is Mirrored:
        return value.handle_for(group)
    if kind is np.ndarray or kind is float or kind is int:
        return value
    return tree.map(
        lambda leaf: leaf.handle_for(group) if isinstance(leaf, DistributedValues) else leaf, value
    )


def dealt_out(result: Any, group: Group) -> Any:
    """The result of a merge function, in the form in which the runtime sends each replica its component."""

    def dealt(leaf: Any) -> Any:
        if not isinstance(leaf, DistributedValues):
            return leaf
        if leaf.handle is None and len(leaf) == group.size:
            return PerRank(leaf.values)  # not yet on the replicas, and needed there once
        return leaf.handle_for(group)

    return tree.map(dealt, result)


def wrapped(result: Any) -> Any:
    """The tree `result` of handles, with `PerReplica` leaves instead."""
    return tree.map(PerReplica, result)


def select(value: Any, rank: int) -> Any:
    """The tree `value` with the components of replica `rank`."""
    return tree.map(lambda leaf: leaf.values[rank] if isinstance(leaf, DistributedValues) else leaf, value)
