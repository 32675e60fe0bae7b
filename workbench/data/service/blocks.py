"""Encodes elements for the way from worker to consumer: arrays as bytes, errors as text. Nothing is pickled."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Iterator
from typing import Any

from workbench import errors
from workbench.data.service.wire import Fields
from workbench.data.stages.grouping.batches import Joined
from workbench.data.stored.blocks import decoded, encoded, kinds
from workbench.data.structure import Structure
from workbench.data.tables import Failed, Leaves, ListTable, Run, attempts
from workbench.errors import DataLossError, UnknownError, WorkbenchError

_MOST_TEXT = 10_000


def packed(runs: list[Run], compression: str) -> tuple[list[Fields], bytes]:
    """Runs as segments, each of elements or of an error, and the bytes of all of them."""
    segments: list[Fields] = []
    parts: list[bytes] = []
    for failed, group in itertools.groupby(runs, lambda run: isinstance(run, Failed)):
        members = list(group)
        if failed:
            segments += [_error(run.error) for run in members]  # type: ignore[attr-defined]
            continue
        for segment, part in _elements(members, compression):
            segments.append(segment)
            parts.append(part)
    return segments, b"".join(parts)


def unpacked(segments: list[Fields], payload: bytes, structure: Structure, worker: str) -> list[Run]:
    """The runs that `packed` encoded, in other tables; one per segment.

    Args:
      segments: The content of the bytes.
      payload: The bytes.
      structure: The structure of an element.
      worker: The worker that sent them, for errors.

    Raises:
      DataLossError: if the bytes are not elements.
    """
    place = f"a block of data worker {worker}"
    runs: list[Run] = []
    start = 0
    try:
        for segment in segments:
            if "error" in segment:
                runs.append(Failed(_raised(segment, worker)))
                continue
            stop = start + segment["bytes"]
            runs.append(decoded(payload[start:stop], structure, place))
            if len(runs[-1]) != segment["count"]:
                raise DataLossError(f"{place} has {len(runs[-1])} elements instead of {segment['count']}")
            start = stop
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:  # segments that `packed` did not write
        raise DataLossError(f"{place} is damaged: {type(error).__name__}: {error}") from error
    return runs


def size_of(run: Run) -> int:
    """How many of a lane's numbers a run takes."""
    return 1 if isinstance(run, Failed) else len(run)


def cut(run: Run, start: int, stop: int) -> Run:
    """A part of a run."""
    return run if isinstance(run, Failed) else Run(run.table, run.rows[start:stop])


def _elements(runs: list[Run], compression: str) -> Iterator[tuple[Fields, bytes]]:
    if not all(isinstance(run.table, ListTable) for run in runs):
        try:
            columns: Any = Joined(list(runs)).gather()
            count = sum(map(len, runs))
            data = encoded(columns, count, compression)
        except Exception:  # a single element, or different ones: making them one by one shows which
            pass
        else:
            yield {"count": count, "bytes": len(data)}, data
            return
    alike: list[Leaves] = []
    for item in attempts(iter(runs), False):
        if isinstance(item, Failed):
            yield from _rows(alike, compression)
            alike = []
            yield _error(item.error), b""
            continue
        if alike and kinds(alike[0]) != kinds(item[0]):
            yield from _rows(alike, compression)
            alike = []
        alike.append(item[0])
    yield from _rows(alike, compression)


def _rows(rows: list[Leaves], compression: str) -> Iterator[tuple[Fields, bytes]]:
    if not rows:
        return
    try:
        data = encoded(list(zip(*rows, strict=True)), len(rows), compression)
    except Exception as error:  # such as a nested dataset, which cannot be sent
        for _ in rows:
            yield _error(error), b""
        return
    yield {"count": len(rows), "bytes": len(data)}, data


def _error(error: BaseException) -> Fields:
    notes = list(getattr(error, "__notes__", ()))
    try:
        message = str(error)
    except Exception as other:
        message = f"<its text raised {type(other).__name__}>"
    kind = next((each for each in type(error).__mro__ if _known(each.__name__) is each), Exception)
    text = message if kind is type(error) else f"{type(error).__name__}: {message}"
    return {"error": kind.__name__, "message": text[:_MOST_TEXT], "notes": notes, "count": 1}


def _known(name: str) -> Any:
    """The class of an error, if this process has it."""
    return getattr(errors, name, None) or getattr(builtins, name, None)


def _raised(segment: Fields, worker: str) -> Exception:
    kind = _known(str(segment["error"]))
    message = str(segment["message"])
    error: Exception
    if isinstance(kind, type) and issubclass(kind, WorkbenchError):
        error = kind(message)
    elif isinstance(kind, type) and issubclass(kind, Exception):
        try:
            error = kind(message)
        except TypeError:  # such as UnicodeDecodeError, which needs more arguments
            error = UnknownError(f"{segment['error']}: {message}")
    else:
        error = UnknownError(message)
    for note in segment["notes"]:
        error.add_note(str(note))
    error.add_note(f"raised on data worker {worker}")
    return error
