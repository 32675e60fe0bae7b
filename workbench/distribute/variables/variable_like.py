"""VariableLike: the methods that change a variable or one of its components."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from workbench.arguments import flag
from workbench.distribute.arrays.array_like import ArrayLike
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.variables import scatter_nd
from workbench.distribute.variables.programs import Update


class VariableLike(ArrayLike):
    """An array that can be changed as a whole (`assign`) or by rows (`scatter_add`), as tf.Variable.

    All methods return the variable. The other arguments are TensorFlow's: `use_locking` and `name` have no effect, and
    with `read_value=False` nothing is returned, except for a `ShardedVariable`.
    """

    __slots__ = ()

    def _update(self, how: Update, value: Any) -> None:
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Its name in views and errors, such as "w:0"."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        raise NotImplementedError

    def _identity(self) -> tuple[Any, ...]:
        """A hashable value that distinguishes it from other variables."""
        raise NotImplementedError

    def ref(self) -> VariableReference:
        """A hashable reference, to use as a key: variables themselves compare by element."""
        return VariableReference(self._identity(), self)

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Sets the value.

        In a replica function, a variable's `aggregation` combines the replicas' values for all; with NONE each replica
        keeps its own. For ON_READ variables, a replica sets its own component. Outside replica functions, every
        component gets `value`, or its own part of a `PerReplica`; ON_READ with SUM divides `value` among them.

        Args:
          value: An array or number of the variable's shape, or a distributed value.
          use_locking: Without effect.
          name: Without effect.
          read_value: Whether to return the variable.

        Raises:
          ValueError: if the shape differs, or a Python number would be summed over replicas.
          InvalidArgumentError: if the dtype cannot hold an array.
          TypeError: if the dtype cannot hold a Python number.
        """
        wanted = read_value is True or flag(read_value, "assign: read_value")
        self._update("assign", value)
        return self if wanted else None

    def assign_add(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value; see `assign`.

        Args:
          value: See `assign`.
          use_locking: Without effect.
          name: Without effect.
          read_value: Whether to return the variable.

        Raises:
          ValueError: outside replica functions, if the variable is ON_READ with SUM.
        """
        wanted = read_value is True or flag(read_value, "assign_add: read_value")
        self._update("assign_add", value)
        return self if wanted else None

    def assign_sub(
        self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value; see `assign_add`.

        Args:
          value: See `assign`.
          use_locking: Without effect.
          name: Without effect.
          read_value: Whether to return the variable.
        """
        wanted = read_value is True or flag(read_value, "assign_sub: read_value")
        self._update("assign_sub", value)
        return self if wanted else None

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Adds rows: `v[indices[i]] += values[i]`; repeated indices are applied each time.

        In a replica function, the variable's `aggregation` first combines the rows of all replicas, with duplicates.

        Args:
          sparse_delta: `IndexedSlices` with values of shape `indices.shape + v.shape[1:]`, or a scalar for all rows.
          use_locking: Without effect.
          name: Without effect.

        Raises:
          TypeError: if it is not IndexedSlices, or the dtype cannot hold it.
          ValueError: if its shape does not match.
          InvalidArgumentError: if an index is out of range.
          NotImplementedError: for ON_READ variables.
        """
        self._update("scatter_add", sparse_delta)
        return self

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Subtracts rows; see `scatter_add`.

        Args:
          sparse_delta: See `scatter_add`.
          use_locking: Without effect.
          name: Without effect.
        """
        self._update("scatter_sub", sparse_delta)
        return self

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Multiplies rows; see `scatter_add`.

        Args:
          sparse_delta: See `scatter_add`.
          use_locking: Without effect.
          name: Without effect.
        """
        self._update("scatter_mul", sparse_delta)
        return self

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Divides rows, truncating integers towards zero; see `scatter_add`.

        Args:
          sparse_delta: See `scatter_add`.
          use_locking: Without effect.
          name: Without effect.
        """
        self._update("scatter_div", sparse_delta)
        return self

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Takes the smaller of each row and its new values; see `scatter_add`.

        Args:
          sparse_delta: See `scatter_add`.
          use_locking: Without effect.
          name: Without effect.

        Raises:
          NotImplementedError: with aggregation SUM or MEAN.
        """
        self._update("scatter_min", sparse_delta)
        return self

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Takes the larger of each row and its new values; see `scatter_min`.

        Args:
          sparse_delta: See `scatter_add`.
          use_locking: Without effect.
          name: Without effect.
        """
        self._update("scatter_max", sparse_delta)
        return self

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Sets rows; for repeated indices, the last values count. See `scatter_min`.

        Args:
          sparse_delta: See `scatter_add`.
          use_locking: Without effect.
          name: Without effect.
        """
        self._update("scatter_update", sparse_delta)
        return self

    def batch_scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Sets slices, each within its own position in the first dimensions: `v[i, indices[i, j]] = values[i, j]`.

        Args:
          sparse_delta: `IndexedSlices` with indices of shape `(b1, ..., bm, n)` and values of shape
            `(b1, ..., bm, n) + v.shape[m + 1:]`.
          use_locking: Without effect.
          name: Without effect.

        Raises:
          TypeError: if it is not IndexedSlices; see `scatter_nd_add` for other errors.
        """
        where = f"batch_scatter_update of variable {self.name!r}"
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(
                f"{where} needs wb.IndexedSlices(values, indices), got {type(sparse_delta).__name__}"
            )
        places = scatter_nd.coordinates(sparse_delta.indices, where)
        self._scatter_nd("scatter_update", places, sparse_delta.values, where)
        return self

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Adds to elements or slices, given by coordinates; repeated coordinates are applied each time.

        Args:
          indices: Shape `(..., k)`, integers: the last dimension holds coordinates in the first `k` dimensions.
          updates: Shape `indices.shape[:-1] + v.shape[k:]`.
          name: Without effect.

        Raises:
          TypeError: if indices are not integers, or the dtype cannot hold `updates`.
          ValueError: if shapes do not match.
          InvalidArgumentError: if coordinates are out of range.
          NotImplementedError: for variables of a strategy, as in TensorFlow.

        >>> wb.Variable([[1.0, 2.0], [3.0, 4.0]]).scatter_nd_add([[0, 1], [1, 0]], [10.0, 20.0]).numpy()
        array([[ 1., 12.],
               [23.,  4.]], dtype=float32)
        """
        self._scatter_nd("scatter_add", indices, updates, f"scatter_nd_add of variable {self.name!r}")
        return self

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtracts from elements; see `scatter_nd_add`.

        Args:
          indices: See `scatter_nd_add`.
          updates: See `scatter_nd_add`.
          name: Without effect.
        """
        self._scatter_nd("scatter_sub", indices, updates, f"scatter_nd_sub of variable {self.name!r}")
        return self

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Sets elements; for repeated coordinates, the last values count. See `scatter_nd_add`.

        Args:
          indices: See `scatter_nd_add`.
          updates: See `scatter_nd_add`.
          name: Without effect.
        """
        self._scatter_nd("scatter_update", indices, updates, f"scatter_nd_update of variable {self.name!r}")
        return self

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Takes the smaller of each element and its new values; see `scatter_nd_add`.

        Args:
          indices: See `scatter_nd_add`.
          updates: See `scatter_nd_add`.
          name: Without effect.
        """
        self._scatter_nd("scatter_min", indices, updates, f"scatter_nd_min of variable {self.name!r}")
        return self

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Takes the larger of each element and its new values; see `scatter_nd_add`.

        Args:
          indices: See `scatter_nd_add`.
          updates: See `scatter_nd_add`.
          name: Without effect.
        """
        self._scatter_nd("scatter_max", indices, updates, f"scatter_nd_max of variable {self.name!r}")
        return self

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """The elements or slices at some coordinates: an array of shape `indices.shape[:-1] + v.shape[k:]`.

        Args:
          indices: See `scatter_nd_add`.
          name: Without effect.
        """
        return scatter_nd.gathered(self._array(), indices, f"gather_nd of variable {self.name!r}")

    def get_shape(self) -> tuple[int, ...]:
        """Its dimensions, as `shape`."""
        return self.shape

    def is_initialized(self) -> bool:
        """Always True, because a variable has a value from the beginning."""
        return True

    def _scatter_nd(self, how: str, indices: Any, updates: Any, where: str) -> None:
        self._update("assign", scatter_nd.changed(self._array(), how, indices, updates, where))


@dataclass(frozen=True, slots=True, repr=False)
class VariableReference:
    """A variable as a dictionary key or set element (as returned by tf.Variable.ref).

    References are equal if they refer to the same variable, whatever its value.

    Attributes:
      identity: Distinguishes the variable from others.
    """

    identity: tuple[Any, ...]
    _variable: Any

    def __deepcopy__(self, memo: dict[int, Any]) -> VariableReference:
        return copy.deepcopy(self._variable, memo).ref()  # type: ignore[no-any-return]

    def deref(self) -> Any:
        """The variable."""
        return self._variable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableReference) and other.identity == self.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"<reference to {self._variable!r}>"
