"""State: the content of a checkpoint, as leaves with paths such as "model/layers/0/w".

Variables and iterators are leaves; so are arrays, numbers, strings, booleans and None. Lists and dicts that contain
only the last four are leaves, too, because they may have another length when they are restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from workbench.data.iterator import DatasetIterator
from workbench.distribute.arrays.as_array import Array, as_array, namespace_of
from workbench.distribute.described_strategy import DescribedStrategy
from workbench.distribute.input.distributed_dataset import DistributedIterator
from workbench.distribute.servers.sharded_variable import ShardedVariable
from workbench.distribute.variables.variable import Variable

Path = tuple[str, ...]


@runtime_checkable
class Stateful(Protocol):
    """An object that saves and loads its own state, like optimizers and modules of PyTorch."""

    def state_dict(self) -> Any:
        """Returns its state as a nested structure; see `leaves_of`."""

    def load_state_dict(self, state: Any) -> Any:
        """Loads a state that `state_dict` returned."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of the state.

    Attributes:
      kind: "variable", "iterator", "array" or "value".
      value: The variable, iterator, array or plain value itself.
    """

    kind: str
    value: Any


class State:
    """The leaves of a program's state, under the names of its parts."""

    def __init__(self, parts: Mapping[str, Any], root: Any = None) -> None:
        """Traverses `parts` once, and calls `state_dict` of each `Stateful`.

        Args:
          parts: The parts, by name.
          root: An object, dict or list with further parts at the top level, or None.

        Raises:
          TypeError: if a checkpoint cannot hold a value; the message names its path.
          ValueError: if two leaves would have the same path, or something contains itself.
        """
        self._parts = dict(parts)
        self._root = root
        self._states: dict[int, Any] = {}
        self.leaves: dict[str, Leaf] = {}
        self._add((), root)
        for name, part in self._parts.items():
            self._add((name,), part)

    def strategies(self) -> list[DescribedStrategy]:
        """The strategies of its variables."""
        found = {
            id(strategy): strategy
            for leaf in self.leaves.values()
            if leaf.kind == "variable" and (strategy := leaf.value.strategy) is not None
        }
        return list(found.values())

    def iterators(self) -> list[DatasetIterator | DistributedIterator]:
        """Its iterators."""
        return [leaf.value for leaf in self.leaves.values() if leaf.kind == "iterator"]

    def put(self, new: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the parts with new values by path; changes dicts, lists, objects and the root in place."""
        if self._root is not None:
            self._replaced((), self._root, new)
        return {name: self._replaced((name,), part, new) for name, part in self._parts.items()}

    def _add(self, path: Path, value: Any) -> None:
        if not path and value is None:
            return
        for place, leaf in self._walk(path, value, ()):
            text = as_text(place)
            if text in self.leaves:
                raise ValueError(f"two values of the checkpoint have the path {text!r}; rename a key")
            self.leaves[text] = leaf

    def _walk(self, path: Path, value: Any, within: tuple[int, ...]) -> Iterator[tuple[Path, Leaf]]:
        kind = _kind_of(value)
        if kind:
            yield path, Leaf(kind, value)
            return
        if id(value) in within:
            raise ValueError(f"{as_text(path)!r} contains itself; a checkpoint holds trees")
        inside = (*within, id(value))
        if isinstance(value, Stateful):
            self._states[id(value)] = state = value.state_dict()
            yield from self._walk(path, state, inside)
            return
        for key, item in _items(path, value):
            yield from self._walk((*path, key), item, inside)

    def _replaced(self, path: Path, value: Any, new: Mapping[str, Any]) -> Any:
        kind = _kind_of(value)
        if kind in ("variable", "iterator"):
            return value
        if kind:
            text = as_text(path)
            return _in_place(value, new[text]) if text in new else value
        if isinstance(value, Stateful):
            value.load_state_dict(self._replaced(path, self._states[id(value)], new))
            return value
        replaced = [self._replaced((*path, key), item, new) for key, item in _items(path, value)]
        if isinstance(value, dict):
            value.update(zip(list(value), replaced, strict=True))
        elif isinstance(value, list):
            value[:] = replaced
        elif isinstance(value, tuple):
            return type(value)(*replaced) if hasattr(value, "_fields") else type(value)(replaced)
        else:
            vars(value).update(zip(list(vars(value)), replaced, strict=True))
        return value


def is_leaf(value: Any) -> bool:
    """Whether a value has no parts with their own paths."""
    return bool(_kind_of(value))


def as_text(path: Path) -> str:
    """A path as text; "/" in a key is "~1", and "~" is "~0", as in JSON pointers."""
    return "/".join(key.replace("~", "~0").replace("/", "~1") for key in path)


def host_array(value: Any) -> Array:
    """Copies an array of any library to NumPy; a copy, because the program may write to the array."""
    return np.array(as_array(value))


def like(value: Any, array: Array) -> Any:
    """Converts `array` to the library of `value`; to a NumPy scalar if `value` is one."""
    if isinstance(value, np.generic):
        return array[()]
    library = namespace_of(value)
    return array if library is np else library.asarray(array)


def _kind_of(value: Any) -> str:
    """The kind of a leaf; "" for a container."""
    if isinstance(value, Variable | ShardedVariable):
        return "variable"
    if isinstance(value, DatasetIterator | DistributedIterator):
        return "iterator"
    if isinstance(value, np.ndarray | np.generic) or _is_array(value):
        return "array"
    return "value" if _is_plain(value, 0) else ""


def _is_array(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib", "cupy") and hasattr(value, "dtype")


def _is_plain(value: Any, depth: int) -> bool:
    """Whether JSON preserves the value unchanged."""
    if value is None or type(value) in (bool, int, float, str):
        return True
    if depth > 64:
        return False
    if type(value) is list:
        return all(_is_plain(item, depth + 1) for item in value)
    if type(value) is dict:
        return all(type(key) is str and _is_plain(item, depth + 1) for key, item in value.items())
    return False


def _items(path: Path, value: Any) -> list[tuple[str, Any]]:
    """A container's items, with its keys as text.

    Raises:
      TypeError: if it is not a container.
    """
    if isinstance(value, dict):
        for key in value:
            if type(key) not in (str, int):
                raise TypeError(
                    f"a checkpoint cannot hold the key {key!r:.60} of {as_text(path)!r}; use text or whole numbers"
                )
        return [(str(key), item) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [(str(index), item) for index, item in enumerate(value)]
    if hasattr(value, "__dict__") and not isinstance(value, type | Callable):
        return list(vars(value).items())
    raise TypeError(
        f"a checkpoint cannot hold {as_text(path)!r}, a {type(value).__name__}: {value!r:.80}. It holds variables, "
        f"iterators over datasets, arrays, numbers, texts, and lists, dicts and objects of these; give the object "
        f"methods state_dict() and load_state_dict(state), or leave it out"
    )


def _in_place(value: Any, new: Any) -> Any:
    """The old list or dict, updated in place, if the new value has the same type; otherwise the new value."""
    if type(value) is list and type(new) is list:
        value[:] = new
        return value
    if type(value) is dict and type(new) is dict:
        value.clear()
        value.update(new)
        return value
    return new
