"""ShardedVariable: the rows of one variable divided over several parameter servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from itertools import accumulate, pairwise
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
import optree

from workbench.arguments import several
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import Array, as_array, as_operand
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.servers.on_servers import OnServers
from workbench.distribute.variables.checked_values import checked_rows, checked_slices, checked_update
from workbench.distribute.variables.programs import Update
from workbench.distribute.variables.scatter import SCATTERS
from workbench.distribute.variables.variable import Variable, no_coordinates, variable_of
from workbench.distribute.variables.variable_like import VariableLike
from workbench.errors import WrongType
from workbench.runtime.replica.env import current_env

_REMEDY = "wb.Variable(...).variables"
_Method = TypeVar("_Method", bound=Callable[..., Any])


def _returning_it(update: _Method) -> _Method:
    """Makes a method return the variable even with `read_value=False`, as in TensorFlow."""

    @wraps(update)
    def updated(self: ShardedVariable, *args: Any, **kwargs: Any) -> ShardedVariable:
        update(self, *args, **kwargs)
        return self

    return cast(_Method, updated)


class ShardedVariable(VariableLike):
    """Variables that act as one; each has consecutive rows.

    Raises:
      WrongType: if there are none, or one is not a variable.

    `wb.Variable(...)` in the scope of a `ParameterServerStrategy` with a `variable_partitioner` returns one if the
    partitioner requests several shards. In computations it is the whole array, which then travels; `sparse_read` and
    the scatter updates transfer only the given rows.

    """

    __slots__ = ("__weakref__", "_offsets", "_shape", "_variables")
    travels_by_id = True

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._variables = tuple(several(variables, "ShardedVariable", _REMEDY))
        if not self._variables or not all(map(_is_shard, self._variables)):
            raise WrongType(
                "ShardedVariable takes variables with rows on the parameter servers of one strategy, got "
                f"{list(self._variables)!r:.80}; use {_REMEDY} in the scope of a ParameterServerStrategy with a "
                "variable_partitioner"
            )
        self._offsets = [0, *accumulate(part.shape[0] for part in self._variables)]
        self._shape = (self._offsets[-1], *self._variables[0].shape[1:])

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def variables(self) -> list[Variable]:
        """The shards, in order; `w/part_0`, `w/part_1` and so on."""
        return list(self._variables)

    @property
    def name(self) -> str:
        """The user's name for it."""
        return self._variables[0].description.name.rpartition("/part_")[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole variable."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of its elements."""
        return self._variables[0].dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    @property
    def trainable(self) -> bool:
        """Whether training should change it."""
        return self._variables[0].trainable

    @property
    def strategy(self) -> Any:
        """The strategy in whose scope it was created."""
        return self._variables[0].strategy

    @property
    def synchronization(self) -> Any:
        """The same as for its shards."""
        return self._variables[0].synchronization

    @property
    def aggregation(self) -> Any:
        """The same as for its shards."""
        return self._variables[0].aggregation

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return iter(self._variables)

    def _identity(self) -> tuple[Any, ...]:
        return tuple(part.description.key for part in self._variables)

    # -- reading and writing ------------------------------------------------------------------------------------

    assign = _returning_it(VariableLike.assign)
    assign_add = _returning_it(VariableLike.assign_add)
    assign_sub = _returning_it(VariableLike.assign_sub)

    def _array(self) -> Array:
        if not _in_replica():
            return np.concatenate(self._placement.read_all(self._variables))
        return np.concatenate([part.read_value() for part in self._variables])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):  # one row comes from its shard alone
            row = int(key)
            if not -len(self) <= row < len(self):
                raise IndexError(f"row {row} of variable {self.name!r}, which has {len(self)}")
            return self.sparse_read(row % len(self))
        return super().__getitem__(key)

    def _scatter_nd(self, how: str, indices: Any, updates: Any, where: str) -> NoReturn:
        raise NotImplementedError(no_coordinates(where))

    def sparse_read(self, indices: Any, name: str | None = None) -> Array:
        """Reads rows, each from its shard; see `Variable.sparse_read`."""
        wanted = checked_rows(self, indices)
        flat = wanted.reshape(-1)
        rows = np.empty((flat.size, *self.shape[1:]), self.dtype)
        parts = list(self._by_shard(flat))
        if _in_replica():
            found = [part.sparse_read(own) for part, _, own in parts]
        else:
            found = self._placement.gather_all([(part, own) for part, _, own in parts])
        for (_, chosen, _), values in zip(parts, found, strict=True):
            rows[chosen] = values
        return rows.reshape((*wanted.shape, *self.shape[1:]))

    def by_shard(self, gradient: Any) -> list[tuple[Variable, Any]]:
        """Divides a value or some rows into the parts of the affected shards.

        Args:
          gradient: An array of the whole variable's shape, or IndexedSlices.
        """
        if not isinstance(gradient, IndexedSlices):
            return [(part, gradient[begin:end]) for part, (begin, end) in self._extents()]
        parts = []
        for part, taken in self._rows_by_shard(gradient):
            values, indices = taken()
            parts.append((part, IndexedSlices(values, indices, part.shape)))
        return parts

    def _rows_by_shard(
        self, rows: IndexedSlices
    ) -> Iterator[tuple[Variable, Callable[[], tuple[Array, Array]]]]:
        """Each affected shard, with a function that returns its part of the rows: values and indices."""
        indices = np.asarray(rows.indices).reshape(-1)
        values = np.asarray(rows.values).reshape(indices.size, *self.shape[1:])
        for part, chosen, own in self._by_shard(indices):
            yield part, partial(_taken, values, chosen, own)

    def _update(self, how: Update, value: Any) -> None:
        if how in SCATTERS:
            checked: Any = checked_slices(self, how, value, traced=False)  # type: ignore[arg-type]
        else:
            # Python numbers stay as they are, because the errors about them differ from those about arrays.
            operand = (
                value
                if isinstance(value, int | float | complex | list | tuple)
                else as_operand(as_array(value))
            )
            checked = checked_update(self, how, operand)  # type: ignore[arg-type]
        if _in_replica():
            for part, own in self.by_shard(checked):
                getattr(part, how)(own)
        elif how in SCATTERS:
            self._placement.put_all(how, list(self._rows_by_shard(checked)))
        else:
            self._placement.put_all(how, self.by_shard(checked))

    @property
    def _placement(self) -> OnServers:
        placement = self._variables[0].placement
        assert isinstance(placement, OnServers)
        return placement

    def _extents(self) -> Iterator[tuple[Variable, tuple[int, int]]]:
        """Each shard with its first row and the row after its last one."""
        return zip(self._variables, pairwise(self._offsets), strict=True)

    def _by_shard(self, indices: Array) -> Iterator[tuple[Variable, Array, Array]]:
        """Each shard with rows among `indices`: their positions, and their numbers in the shard."""
        for part, (begin, end) in self._extents():
            chosen = ((begin <= indices) & (indices < end)).nonzero()[0]
            if chosen.size:
                yield part, chosen, indices[chosen] - begin

    # -- travelling and showing ---------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        return ShardedVariable, (self._variables,)

    def __repr__(self) -> str:
        extent = ",".join(map(str, self.shape))
        where = ", ".join(f"{len(part)} {part.whereabouts}" for part in self._variables[:8])
        more = ", …" if len(self._variables) > 8 else ""
        return f"<ShardedVariable {self.name!r} {self.dtype.name}[{extent}]: rows {where}{more}>"


def _is_shard(variable: Any) -> bool:
    return (
        isinstance(variable, Variable) and isinstance(variable.placement, OnServers) and bool(variable.shape)
    )


def _taken(values: Array, chosen: Array, indices: Array) -> tuple[Array, Array]:
    return values.take(chosen, axis=0), indices


def _in_replica() -> bool:
    """Whether a replica function of another strategy is running; each shard itself refuses that."""
    return current_env() is not None and contexts.merging_env() is None


# Structures that contain one, such as the result of a function, keep it as it is.
_as_node: Any = optree.register_pytree_node  # optree's types know only collections
_as_node(
    ShardedVariable,
    lambda variable: ((), tuple(part.description for part in variable._variables), ()),
    lambda descriptions, _: ShardedVariable([variable_of(each) for each in descriptions]),
    namespace="workbench",
)
