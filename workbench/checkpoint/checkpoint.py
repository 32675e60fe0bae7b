"""Checkpoint: saves and restores variables, positions in datasets, and plain Python state."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from workbench.arguments import flag
from workbench.checkpoint.background import BackgroundSave
from workbench.checkpoint.folder import folder_at
from workbench.checkpoint.gone_back import gone_back
from workbench.checkpoint.manifest import NAME, read_manifest
from workbench.checkpoint.restore import Restored, restore
from workbench.checkpoint.save import Save
from workbench.checkpoint.state import State, is_leaf
from workbench.data.sources.urls import Url, file_name
from workbench.distribute import contexts
from workbench.errors import NotFoundError, WrongType
from workbench.runtime.restorer import GoneBack


class Checkpoint:
    """Saves and restores the named parts of a program's state as a whole (as tf.train.Checkpoint).

    Parts are variables of any strategy, iterators over any dataset, arrays of NumPy, JAX and CuPy, numbers, strings,
    booleans and None, in lists, tuples, dicts and the attributes of objects. An object with `state_dict()` and
    `load_state_dict(state)` saves and restores its state itself. You can add parts later: `checkpoint.model = model`.

    A checkpoint is a folder with a manifest in JSON and files of safetensors. Replicas write their variables in
    parallel, without a detour through the notebook. A checkpoint counts once its manifest is in place; until then, an
    earlier checkpoint at that path stays valid. Reading a checkpoint never executes anything. You can restore it to
    another strategy or to another number of replicas.

    Args:
      root: An object, dict or list whose parts are saved at the top, beside `parts`, such as a model: its variable `w`
        has the path "w".
      parts: State by name; a `Checkpoint` may be one, too.

    Raises:
      TypeError: if `root` is a single value.

    >>> w = wb.Variable([1.0, 2.0])
    >>> checkpoint = wb.Checkpoint(model=[w], epoch=0)
    >>> path = checkpoint.save("checkpoints/digits")
    >>> w = w.assign([5.0, 5.0])
    >>> status = checkpoint.restore(path)
    >>> w.numpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, root: Any = None, **parts: Any) -> None:
        if root is not None and is_leaf(root):
            raise WrongType(
                f"the root of a checkpoint has parts, got {root!r:.80}; give a single value by its name"
            )
        self._root = root
        self._parts: dict[str, Any] = {}
        self._save_counter = 0
        self._background: BackgroundSave | None = None
        for name, part in parts.items():
            setattr(self, name, part)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        elif hasattr(type(self), name):
            instead = (
                "give it as Checkpoint(root)"
                if name == "root"
                else "give this part of the state another name"
            )
            raise AttributeError(f"{name!r} belongs to Checkpoint itself; {instead}")
        else:
            self._parts[name] = value

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__.get("_parts", {})
        if name not in parts:
            raise AttributeError(f"the checkpoint has no {name!r}; it has {', '.join(parts) or 'nothing'}")
        return parts[name]

    def __delattr__(self, name: str) -> None:
        if self._parts.pop(name, self) is self:
            raise AttributeError(f"the checkpoint has no {name!r}")

    @property
    def root(self) -> Any:
        """The object whose parts are at the top, or None."""
        return self._root

    @property
    def save_counter(self) -> int:
        """How often `save` was called, also before the program was restored."""
        return self._save_counter

    @property
    def saving(self) -> BackgroundSave | None:
        """The newest background save; None before the first."""
        return self._background

    def save(self, file_prefix: str | os.PathLike[str], *, background: bool = False) -> str:
        """Writes a checkpoint with a number in its name.

        Args:
          file_prefix: Such as "checkpoints/digits"; the checkpoint is "checkpoints/digits-1", then "-2".
          background: See `write`.

        Returns:
          The path of the checkpoint.

        Raises:
          WorkbenchError: see `write`.
        """
        self.sync()
        counter = self._save_counter + 1
        return self.write_numbered(f"{_text(file_prefix)}-{counter}", counter, background=background)

    def write(self, file_prefix: str | os.PathLike[str], *, background: bool = False) -> str:
        """Writes a checkpoint and replaces an existing one.

        Args:
          file_prefix: A folder, or a URL that fsspec can write to.
          background: Return as soon as the snapshot is taken, and write it while training continues. If that fails, the
            cell, the log and Python's `logging` show the error at once, and the next call of the checkpoint raises it;
            `sync` waits for the end.

        Returns:
          `file_prefix`.

        Raises:
          StorageFull: if no space is left. An earlier checkpoint there stays unchanged.
          FailedPreconditionError: if another process is writing there, or a file is in its place.
          TypeError: if a part cannot be saved.
          RuntimeError: in a replica function.
        """
        return self.write_numbered(_text(file_prefix), self._save_counter, background=background)

    def write_numbered(
        self,
        path: str,
        counter: int,
        *,
        background: bool = False,
        after_ns: int = 0,
        period_began_ns: int = 0,
        then: Callable[[], None] = lambda: None,
    ) -> str:
        """See `write`.

        Args:
          path: The path of the checkpoint.
          counter: The new save counter, which is also saved.
          background: See `write`.
          after_ns: A time; the time in the manifest will be later.
          period_began_ns: See `Manifest`.
          then: Called when the checkpoint is complete.
        """
        refuse_on_replica("saving a checkpoint")
        background = flag(background, "background")
        self.sync()
        state = State(self._parts, self._root)
        save = Save(
            path,
            state,
            counter,
            after_ns=after_ns,
            period_began_ns=period_began_ns,
            background=background,
        )
        save.begin()
        if background:
            self._background = BackgroundSave(save, then)
        else:
            save.finish(wait_seconds=0.2)
            then()
        self._save_counter = counter
        return path

    def sync(self) -> None:
        """Waits for a background save.

        Raises:
          WorkbenchError: if the save failed, unless an earlier call has raised its error.
        """
        if self._background is not None:
            self._background.wait()

    def restore(self, save_path: str | os.PathLike[str] | None, *, expect_partial: bool = False) -> Restored:
        """Restores all parts from a checkpoint.

        Lists, dicts and objects are changed in place; other values become attributes of this object, under their names.

        Args:
          save_path: A checkpoint's path, as `save` or `write` returned it. None, such as the `latest_checkpoint` of an
            empty directory, restores nothing.
          expect_partial: Whether the checkpoint may lack parts or have more; shapes and dtypes must match anyway.

        Raises:
          NotFoundError: if there is no checkpoint.
          CheckpointInvalid: if it is damaged.
          InvalidArgumentError: if it does not match the program. The message names all differences, and nothing has
            changed.
        """
        restored, self._save_counter = self._read(save_path, expect_partial)
        return restored

    def read(self, save_path: str | os.PathLike[str] | None, *, expect_partial: bool = False) -> Restored:
        """As `restore`, but does not change the save counter."""
        return self._read(save_path, expect_partial)[0]

    def state_dict(self) -> dict[str, Any]:
        """Its parts, for a checkpoint that contains this one."""
        return self._parts | ({} if self._root is None else {"root": self._root})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes the parts that a checkpoint which contains this one has restored."""
        self._parts.update((name, part) for name, part in state.items() if name in self._parts)

    def restore_lost(self, path: str) -> list[GoneBack]:
        """As `restore`, after replicas were lost with their values, but does not wait for a background save.

        That save waits for the replicas, which the calling thread is about to bring back.

        Returns:
          The restored iterators.
        """
        refuse_on_replica("restoring a checkpoint")
        state = State(self._parts, self._root)
        places = [(iterator, iterator.place) for iterator in state.iterators()]
        _, self._save_counter = self._take(path, state, False)
        return [gone_back(iterator, before) for iterator, before in places]

    def _read(self, path: str | os.PathLike[str] | None, expect_partial: bool) -> tuple[Restored, int]:
        refuse_on_replica("restoring a checkpoint")
        expect_partial = flag(expect_partial, "expect_partial")
        self.sync()
        return self._take(path, State(self._parts, self._root), expect_partial)

    def _take(
        self, path: str | os.PathLike[str] | None, state: State, expect_partial: bool
    ) -> tuple[Restored, int]:
        if path is None:
            return Restored("", (), tuple(state.leaves), ()), self._save_counter
        folder = folder_at(_text(path))
        try:
            manifest = read_manifest(folder)
        except NotFoundError as error:
            raise NotFoundError(
                f"there is no checkpoint {folder.name!r}, whose {NAME} is written last: {error}. save and write return "
                f"the path, manager.latest_checkpoint has the newest one"
            ) from None
        restored, new = restore(folder, manifest, state, expect_partial=expect_partial)
        self._parts.update(state.put(new))
        return restored, manifest.save_counter

    def __repr__(self) -> str:
        return f"Checkpoint({', '.join(self._parts)})"


def _text(path: str | os.PathLike[str]) -> str:
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"the path of a checkpoint is a text or a Path, got {path!r:.80}")
    name = file_name(path)
    return name.target if isinstance(name, Url) else name


def refuse_on_replica(what: str) -> None:
    """Raises RuntimeError inside a replica function."""
    if contexts.in_replica_function():
        raise RuntimeError(
            f"{what} is done in the notebook, outside of strategy.run; there is one for all replicas"
        )
