"""CheckpointManager: saves numbered checkpoints in a directory and keeps the newest."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Final, SupportsFloat, SupportsInt

from workbench.arguments import count, flag, function
from workbench.backends.users_line import warn
from workbench.checkpoint.checkpoint import Checkpoint, refuse_on_replica
from workbench.checkpoint.claim import Claim, claim
from workbench.checkpoint.folder import LocalFolder, folder_at, joined
from workbench.checkpoint.manifest import NAME, OURS, SHARD, read_manifest
from workbench.checkpoint.restore import Restored
from workbench.checkpoint.save import is_saving_to
from workbench.data.sources.urls import Url, file_name
from workbench.data.stored.locks import FileLock
from workbench.errors import (
    CheckpointInvalid,
    DataWarning,
    InvalidArgumentError,
    NotFoundError,
    WorkbenchError,
)
from workbench.faults import fault
from workbench.io.storage import absolute
from workbench.runtime.restorer import GoneBack

_NAME: Final = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_. -]*")
_HOUR_NS: Final = 3600 * 10**9


@dataclass(frozen=True, slots=True)
class _Saved:
    """A complete checkpoint of this manager."""

    number: int
    saved_ns: int
    path: str
    preserved: bool
    period_began_ns: int


class CheckpointManager:
    """Saves numbered checkpoints and removes old ones (as tf.train.CheckpointManager).

    A manager owns the checkpoints `<checkpoint_name>-<number>` in its directory, including those of an earlier process.
    It touches no other file. A lock on the folder lets only one process at a time save under a name; others can
    restore. A URL cannot be locked: give each program its own directory or name there, otherwise one may remove files
    that the other has not completed.

    Args:
      checkpoint: The state to save.
      directory: A folder, or a URL that fsspec can write to; a missing folder is made.
      max_to_keep: Number of the newest checkpoints to keep; None keeps all.
      keep_checkpoint_every_n_hours: Also keep one older checkpoint for each period of this many hours. The periods
        count from the start of the directory's first manager; later managers continue them.
      keep_every: Also keep each older checkpoint with a number divisible by this, such as every 1,000th step if
        `save(step)` numbers them.
      checkpoint_name: The beginning of the names.
      step_counter: A variable or number that counts the program's steps; `checkpoint_interval` needs it.
      checkpoint_interval: Number of steps that must pass since the last checkpoint before `save` does anything.
      last_checkpoint_step: The step of the last checkpoint, if the program knows it without `restore_or_initialize`.
      init_fn: The function that `restore_or_initialize` calls if there is no checkpoint.
      background: Whether `save` returns as soon as the snapshot is taken, and writes it while training continues; see
        `Checkpoint.write`.

    Attributes:
      gone_back: The iterators that `restore_lost` moved back and that have not yet reached their former position.

    Raises:
      InvalidArgumentError: if a number is out of range, or a name cannot name a file.
      TypeError: if `checkpoint` is not a `Checkpoint`, `step_counter` not a number, `init_fn` not a function, or
        `background` neither True nor False.

    >>> checkpoint = wb.Checkpoint(w=wb.Variable([1.0, 2.0]))
    >>> manager = wb.CheckpointManager(checkpoint, "checkpoints", max_to_keep=3)
    >>> path = manager.restore_or_initialize()  # None: there is no checkpoint yet
    >>> path = manager.save()
    >>> os.path.relpath(path)
    'checkpoints/ckpt-1'
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str | os.PathLike[str],
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        *,
        keep_every: int | None = None,
        step_counter: SupportsInt | None = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
        background: bool = False,
    ) -> None:
        if not isinstance(checkpoint, Checkpoint):
            raise TypeError(
                f"CheckpointManager saves a wb.Checkpoint, got {type(checkpoint).__name__}; write "
                f"wb.Checkpoint(name=value, ...)"
            )
        hours = keep_checkpoint_every_n_hours
        if hours is not None and not (isinstance(hours, Real) and not isinstance(hours, bool) and hours > 0):
            raise InvalidArgumentError(
                f"keep_checkpoint_every_n_hours must be a number above 0, or None, got {hours!r}"
            )
        if checkpoint_interval is not None and step_counter is None:
            raise InvalidArgumentError(
                "checkpoint_interval counts the steps of step_counter: give both of them"
            )
        if not (step_counter is None or isinstance(step_counter, SupportsInt)):
            raise TypeError(f"step_counter is a variable or a number, got {step_counter!r:.80}")
        if not (isinstance(checkpoint_name, str) and _NAME.fullmatch(checkpoint_name)):
            raise InvalidArgumentError(
                f"checkpoint_name {checkpoint_name!r} cannot begin the name of a folder; use letters, digits, '_' and "
                f"'-'"
            )
        name = file_name(directory)
        self._directory = name.target.rstrip("/") if isinstance(name, Url) else absolute(name)
        self._folder = folder_at(self._directory)
        self._checkpoint = checkpoint
        self._max_to_keep = _count("max_to_keep", max_to_keep, "to keep all")
        self._keep_every = _count("keep_every", keep_every, "to keep only the newest")
        self._keep_hours = hours
        self._pattern = re.compile(rf"{re.escape(checkpoint_name)}-([0-9]{{1,18}})")
        self._name = checkpoint_name
        self._step_counter = step_counter
        self._interval = _count("checkpoint_interval", checkpoint_interval, "to save at each call", least=0)
        self._init_fn = None if init_fn is None else function(init_fn, "init_fn")
        self._in_background = flag(background, "background")
        self._last_step = _count("last_checkpoint_step", last_checkpoint_step, "for none", least=0)
        self._began_ns = time.time_ns()
        self._claim: Claim | None = None
        self.gone_back: Sequence[GoneBack] = ()

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint that is saved."""
        return self._checkpoint

    @property
    def directory(self) -> str:
        """The directory of the checkpoints."""
        return self._directory

    @property
    def checkpoint_interval(self) -> int | None:
        """The number of steps between two saves; None saves at each call of `save`."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """Paths of the complete checkpoints that count for `max_to_keep`, the oldest first."""
        return [one.path for one in self._found() if not one.preserved]

    @property
    def latest_checkpoint(self) -> str | None:
        """Path of the checkpoint that was saved last; None if there is none."""
        found = self._found()
        return found[-1].path if found else None

    def save(
        self,
        checkpoint_number: SupportsInt | None = None,
        check_interval: bool = True,
        *,
        background: bool | None = None,
    ) -> str | None:
        """Saves a checkpoint, then removes surplus ones.

        Args:
          checkpoint_number: The number in the name, such as the step; by default the next one in the directory.
          check_interval: Whether to respect `checkpoint_interval`; a manager that has one never saves a step twice.
          background: Overrides the manager's `background`.

        Returns:
          The path of the checkpoint; None if fewer than `checkpoint_interval` steps have passed.

        Raises:
          FailedPreconditionError: if another process saves under the same name there.
          InvalidArgumentError: if `checkpoint_number` is not a whole number, 0 or more.
          RuntimeError: inside a replica function.
          WorkbenchError: see `Checkpoint.write`.
        """
        refuse_on_replica("saving a checkpoint")
        in_background = self._in_background if background is None else flag(background, "background")
        check_interval = flag(check_interval, "check_interval")
        step = None if self._step_counter is None else int(self._step_counter)
        if self._interval is not None and self._last_step is not None:
            assert step is not None
            if step == self._last_step or (check_interval and step - self._last_step < self._interval):
                return None
        self._checkpoint.sync()
        self._claim_directory()
        found = self._found()
        counter = max([self._checkpoint.save_counter, *(one.number for one in found)]) + 1
        number = counter if checkpoint_number is None else _number(checkpoint_number)
        path = joined(self._directory, f"{self._name}-{number}")
        self._checkpoint.write_numbered(
            path,
            self._checkpoint.save_counter + 1 if checkpoint_number is not None else counter,
            background=in_background,
            after_ns=max([0, *(one.saved_ns for one in found)]),
            period_began_ns=0 if self._keep_hours is None else self._period_began_ns(found),
            then=self._sweep,
        )
        self._last_step = step
        return path

    def restore_or_initialize(self, *, fall_back: bool = False, expect_partial: bool = False) -> str | None:
        """Restores the newest checkpoint; if there is none, calls `init_fn`.

        Args:
          fall_back: Whether to take an older checkpoint, with a warning, if a newer one is damaged.
          expect_partial: See `Checkpoint.restore`.

        Returns:
          The path of the checkpoint; None if there is none.

        Raises:
          CheckpointInvalid: if the newest checkpoint, or with `fall_back` each of them, is damaged.
          InvalidArgumentError: if it does not match the program.
        """
        fall_back = flag(fall_back, "fall_back")
        expect_partial = flag(expect_partial, "expect_partial")
        self._checkpoint.sync()
        found = [one.path for one in reversed(self._found(damaged=True))]
        for path in found:
            try:
                self._restored(path, expect_partial)
            except CheckpointInvalid as error:
                if not fall_back or path == found[-1]:
                    raise
                warn(f"{error}; taking the checkpoint before it", DataWarning)
            else:
                return path
        if self._init_fn is not None:
            self._init_fn()
        return None

    def restore_lost(self) -> str | None:
        """Restores the newest undamaged checkpoint; `wb.connect(..., checkpoint=manager)` calls it after a loss.

        Returns:
          Its path; None if there is none.

        Raises:
          CheckpointInvalid: if all are damaged.
          InvalidArgumentError: if it does not match the program.
        """
        found = [one.path for one in reversed(self._found(damaged=True))]
        for path in found:
            try:
                back = self._checkpoint.restore_lost(path)
            except CheckpointInvalid:
                if path == found[-1]:
                    raise
            else:
                self.gone_back = [*self.gone_back, *back]
                return path
        return None

    def sync(self) -> None:
        """Waits for a background save; see `Checkpoint.sync`."""
        self._checkpoint.sync()

    def _restored(self, path: str, expect_partial: bool) -> Restored:
        restored = self._checkpoint.restore(path, expect_partial=expect_partial)
        if self._step_counter is not None:
            self._last_step = int(self._step_counter)
        return restored

    # -- what is in the directory
    # ------------------------------------------------------------------------------------------

    def _found(self, *, damaged: bool = False) -> list[_Saved]:
        """The complete checkpoints, in the order of saving. With `damaged`, includes those with a damaged manifest."""
        found = []
        for name in self._folder.names():
            match = self._pattern.fullmatch(name)
            if match is None:
                continue
            path = joined(self._directory, name)
            folder = folder_at(path)
            try:
                manifest = read_manifest(folder)
                saved_ns, began_ns = manifest.saved_ns, manifest.period_began_ns
            except NotFoundError:
                continue
            except CheckpointInvalid:
                if not damaged:
                    continue
                saved_ns, began_ns = -1, 0  # a damaged manifest's own time does not count
            preserved = "preserved" in folder.names()
            found.append(_Saved(int(match[1]), saved_ns, path, preserved, began_ns))
        numbers = [one for one in found if one.saved_ns >= 0]
        for one in found:
            if one.saved_ns < 0:  # its number places it among the others
                older = [other.saved_ns for other in numbers if other.number < one.number]
                numbers.append(replace(one, saved_ns=max([0, *older])))
        return sorted(numbers, key=lambda one: (one.saved_ns, one.number))

    def _period_began_ns(self, found: list[_Saved]) -> int:
        """Start of the period until the next preserved checkpoint.

        An earlier manager of the directory may have set it.
        """
        known = max([0, *(one.saved_ns if one.preserved else one.period_began_ns for one in found)])
        return known or self._began_ns

    def _sweep(self) -> None:
        """Removes the oldest surplus checkpoints and what killed processes left."""
        fault("checkpoint.sweep")
        found = self._found()
        if self._max_to_keep is not None:
            active = [one for one in found if not one.preserved]
            kept_ns = self._period_began_ns(found)
            for one in active[: -self._max_to_keep]:
                if self._stays(one, kept_ns):
                    kept_ns = one.saved_ns
                    with folder_at(one.path).create("preserved"):
                        pass
                else:
                    _remove(one.path)
        complete = {one.path for one in found}
        for name in self._folder.names():
            path = joined(self._directory, name)
            if self._pattern.fullmatch(name) and path not in complete:
                _remove_leftovers(path)

    def _stays(self, one: _Saved, kept_ns: int) -> bool:
        """Whether to preserve a checkpoint that is no longer among the newest.

        The last preserved one was saved at `kept_ns`.
        """
        if self._keep_every is not None and one.number % self._keep_every == 0:
            return True
        return self._keep_hours is not None and one.saved_ns - kept_ns >= self._keep_hours * _HOUR_NS

    def _claim_directory(self) -> None:
        if self._claim is None and isinstance(self._folder, LocalFolder):
            self._folder.make()
            self._claim = claim(joined(self._directory, f".{self._name}.lock"))

    def __repr__(self) -> str:
        latest = self.latest_checkpoint
        newest = "no checkpoint yet" if latest is None else os.path.basename(latest)
        return f"CheckpointManager({self._directory!r}, {newest})"


def _count(what: str, value: Any, without: str, least: int = 1) -> int | None:
    """A number of checkpoints or steps, or None.

    Args:
      what: The name of the argument.
      value: The argument.
      without: The meaning of None.
      least: The lowest number allowed.

    Raises:
      InvalidArgumentError: if it is not a whole number from `least` on.
    """
    return None if value is None else count(value, what, least, otherwise=f", or None {without}")


def _number(value: Any) -> int:
    """The number of a checkpoint, possibly read from a variable.

    Raises:
      InvalidArgumentError: if it is not a whole number, 0 or more.
    """
    is_bool = isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")
    if isinstance(value, SupportsInt) and isinstance(value, SupportsFloat) and not is_bool:
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number = int(value)
            if number >= 0 and float(value).is_integer():
                return number
    raise InvalidArgumentError(f"checkpoint_number must be a whole number, 0 or more, got {value!r:.60}")


def latest_checkpoint(checkpoint_dir: str | os.PathLike[str]) -> str | None:
    """Path of the complete checkpoint in a directory that was saved last, whatever its name; None if there is none.

    As tf.train.latest_checkpoint.

    Args:
      checkpoint_dir: Path or URL of the directory.

    >>> manager = wb.CheckpointManager(wb.Checkpoint(epoch=0), "latest", max_to_keep=3)
    >>> paths = [manager.save() for _ in range(2)]
    >>> os.path.relpath(wb.latest_checkpoint("latest"))
    'latest/ckpt-2'
    """
    name = file_name(checkpoint_dir)
    directory = name.target.rstrip("/") if isinstance(name, Url) else absolute(name)
    newest: tuple[int, str] | None = None
    for entry in folder_at(directory).names():
        path = joined(directory, entry)
        with contextlib.suppress(WorkbenchError):
            saved_ns = read_manifest(folder_at(path)).saved_ns
            newest = max(newest or (saved_ns, path), (saved_ns, path))
    return None if newest is None else newest[1]


def _remove(path: str) -> None:
    """Removes a checkpoint: the manifest first, so that a half-removed one does not count.

    Leaves foreign files.
    """
    folder = folder_at(path)
    folder.remove(NAME)
    fault("checkpoint.manifest_removed")
    for name in folder.names():
        if OURS.fullmatch(name):
            folder.remove(name)
    folder.remove_itself()


def _remove_leftovers(path: str) -> None:
    """Removes the remains of a killed process's checkpoint, unless a process writes there or it is only damaged."""
    folder = folder_at(path)
    names = folder.names()
    if (
        is_saving_to(path)
        or NAME in names
        or not any(SHARD.fullmatch(name) or name == "lock" for name in names)
    ):
        return
    if isinstance(folder, LocalFolder):
        if "lock" not in names:
            return
        try:
            FileLock(joined(path, "lock"), wait=False).release()
        except OSError:
            return
    _remove(path)
