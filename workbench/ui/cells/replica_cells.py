"""`wb.run_cell`: runs a cell on every replica, each with its own namespace; `%%replica` is its magic."""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, get_args

from workbench import arguments
from workbench.distribute.strategies.parameter_server import ParameterServerStrategy
from workbench.distribute.strategies.strategy import Strategy
from workbench.errors import (
    CaptureError,
    FailedPreconditionError,
    InvalidArgumentError,
    WorkbenchError,
    WrongType,
)
from workbench.runtime.user_code.notebook_cells import with_cells
from workbench.telemetry.formatting import MOST_NAMED, printable_lines, replicas_text
from workbench.ui.cells import replica_session
from workbench.ui.cells.grouped_outputs import Grouping, grouped
from workbench.ui.cells.replica_session import Outcome
from workbench.ui.render import html

_numbers: Final = itertools.count(1)
_begun: Final[weakref.WeakSet[Strategy]] = weakref.WeakSet()
"""Strategies whose replicas have namespaces."""


class CellOutputs:
    """What a cell printed, returned and raised on each replica; prints it grouped.

    Attributes:
      outcomes: One per replica that should run the cell, in replica order.
      group: How it is shown: "replica" one after the other, "stream" by kind of output, "diff" against the first.
      error: Why the step failed, or None.
      forgotten: Replicas that lost the namespace of earlier cells because they were replaced.
    """

    def __init__(
        self,
        outcomes: Sequence[Outcome],
        *,
        group: Grouping = "replica",
        error: WorkbenchError | None = None,
        forgotten: Sequence[int] = (),
    ) -> None:
        self.outcomes = tuple(outcomes)
        self.group: Grouping = group
        self.error = error
        self.forgotten = tuple(forgotten)

    def raise_error(self) -> None:
        """Raises the error of the step, if it failed."""
        if self.error is not None:
            raise self.error

    def error_in_brief(self) -> WorkbenchError:
        """`error` without the tracebacks, which the outputs show already.

        Raises:
          FailedPreconditionError: if there is none.
        """
        if self.error is None:
            raise FailedPreconditionError("the cell has not failed on any replica")
        first, _, _ = str(self.error).partition("\n\n")
        return type(self.error)(first, **self.error.fields())  # type: ignore[arg-type]

    def __repr__(self) -> str:
        parts = grouped(self.outcomes, self.group)
        lines = [line for title, text in parts for line in (f"[{title}]", *([text] if text else []))]
        return printable_lines("\n".join([*self._notes(), *lines]))

    def _repr_html_(self) -> str:
        notes = [html.alert(note) for note in self._notes()]
        groups = grouped(self.outcomes, self.group)
        if self.group == "replica" and len(groups) > 1:
            return html.card("Replicas", parts=[*notes, self._tabs(groups)], wide=True)
        parts = notes
        for title, text in groups:
            parts += [html.quiet(title), html.preformatted(text) if text else "<br>"]
        return html.card("Replicas", parts=parts, wide=True)

    def _tabs(self, groups: Sequence[tuple[str, str]]) -> str:
        """One tab per replica; opens that of the first replica where the cell failed."""
        failed = [bool(outcome.traceback) for outcome in self.outcomes]
        pages = [
            (f"✖ {title}" if bad else title, html.preformatted(text) if text else html.remark("no output"))
            for bad, (title, text) in zip(failed, groups, strict=True)
        ]
        return html.tabs("Replicas", pages, chosen=failed.index(True) if any(failed) else 0)

    def _notes(self) -> list[str]:
        if not self.forgotten:
            return []
        who = replicas_text(self.forgotten, MOST_NAMED)
        one = len(self.forgotten) == 1
        was, its, is_ = ("was", "its namespace", "is") if one else ("were", "their namespaces", "are")
        return [f"! {who} {was} replaced since the last cell: {its} {is_} empty"]


def run_cell(
    source: str,
    strategy: Strategy,
    replicas: Iterable[int] | None = None,
    *,
    group: Grouping = "replica",
    push: Mapping[str, Any] | None = None,
    filename: str = "",
) -> CellOutputs:
    """Runs Python code on replicas; each replica keeps its own namespace for the next call.

    Every namespace has `wb`, and `ctx`, the replica's context in this cell. The code is a step of the strategy: it can
    use the strategy's variables, and collectives, in which all replicas must take part. If the code fails on any
    replica, its changes to variables are undone on all replicas; names keep the values that the code assigned.

    Args:
      source: The code. If its last line is an expression, the outputs show its value.
      strategy: The strategy whose replicas run the code.
      replicas: Their numbers; None for all replicas.
      group: How to group the outputs; see `CellOutputs`.
      push: Values to assign in the namespaces first, by name. Each replica gets its own component of distributed
        values.
      filename: A name for the code in tracebacks; by default "replica cell 1", and so on.

    Returns:
      The outcome on each replica. Errors of the code are not raised here: see `error`, or call `raise_error()`.

    Raises:
      SyntaxError: if the code is not valid Python; no replica has run it then.
      InvalidArgumentError: if there is no such replica, or the strategy has no replicas.
      CaptureError: if a value of `push` cannot be sent.

    >>> wb.run_cell("x = ctx.replica_id_in_sync_group; x + 1", strategy)  # doctest: +SKIP
    """
    chosen = _checked(strategy, replicas, group)
    arguments.text(source, "run_cell: source")
    if not isinstance(push, Mapping | None):
        raise WrongType(
            f"run_cell: push must be a dictionary of values by name, got {type(push).__name__} {push!r:.60}"
        )
    name = filename or f"replica cell {next(_numbers)}"
    compile(source, name, "exec", dont_inherit=True)  # here, where the error can be shown at once
    fresh = strategy.run_internal(replica_session.prepare).values()
    forgotten = [rank for rank in chosen if fresh[rank]] if strategy in _begun else []
    _begun.add(strategy)
    error: WorkbenchError | None = None
    try:
        strategy.run(replica_session.execute, args=(source, name, chosen), kwargs={"push": dict(push or {})})
    except CaptureError:
        raise  # no replica got the cell
    except WorkbenchError as failure:
        if strategy.group.gang.closed:
            raise
        error = failure
    outcomes = strategy.run_internal(replica_session.collect).values()
    return CellOutputs(
        [_with_cells(outcomes[rank]) for rank in chosen], group=group, error=error, forgotten=forgotten
    )


def parsed_replicas(texts: Sequence[str]) -> tuple[int, ...] | None:
    """Parses replica numbers as users write them: "2", "0,2", "0-3" (inclusive); None without text.

    Raises:
      InvalidArgumentError: if the text has another form, or an empty range.

    >>> parsed_replicas(["0-2", "5,7"])
    (0, 1, 2, 5, 7)
    """
    numbers: list[int] = []
    for text in (part for each in texts for part in each.split(",") if part):
        first, dash, last = text.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InvalidArgumentError(f"replicas are numbers such as 2, 0,2 or 0-3, got {text!r}")
        if dash and int(last) < int(first):
            raise InvalidArgumentError(f"there is no replica in {text}: write {last}-{first}")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers) or None


def only_strategy(namespace: Mapping[str, Any], name: str = "") -> Strategy:
    """The strategy that a notebook cell refers to.

    Args:
      namespace: The notebook's variables.
      name: The variable that holds the strategy; "" if there is only one strategy.

    Raises:
      FailedPreconditionError: if there is none, or several to choose from.
      InvalidArgumentError: if the variable holds something else.
    """
    if name:
        found = namespace.get(name)
        if not isinstance(found, Strategy):
            raise InvalidArgumentError(f"--on {name}: there is no strategy of that name in this notebook")
        return found
    names: dict[int, str] = {}
    closed: list[str] = []
    for each, value in namespace.items():
        if isinstance(value, ParameterServerStrategy):
            continue  # it has no replicas that could run a cell
        if isinstance(value, Strategy) and not value.is_default and not each.startswith("_"):
            if value.group.gang.closed:
                closed.append(each)
            else:
                names.setdefault(id(value), each)
    if not names:
        of = f"the cluster of {', '.join(closed)} was closed, and " if closed else ""
        raise FailedPreconditionError(
            f"{of}there is no {'other ' if closed else ''}strategy in this notebook: "
            "strategy = wb.MirroredStrategy() makes one over all devices"
        )
    if len(names) > 1:
        raise FailedPreconditionError(
            f"there are several strategies in this notebook, {', '.join(names.values())}: choose one with --on NAME"
        )
    found = namespace[next(iter(names.values()))]
    assert isinstance(found, Strategy)
    return found


def named_values(namespace: Mapping[str, Any], names: str) -> dict[str, Any]:
    """The values of variables, given by comma-separated names.

    Args:
      namespace: The notebook's variables.
      names: The names, such as "weights,batch", or "".

    Raises:
      InvalidArgumentError: if there is no such variable.
    """
    wanted = [name for name in names.split(",") if name]
    if missing := [name for name in wanted if name not in namespace]:
        raise InvalidArgumentError(f"--push: there is no variable {', '.join(missing)} in this notebook")
    return {name: namespace[name] for name in wanted}


def _checked(strategy: Strategy, replicas: Iterable[int] | None, group: str) -> tuple[int, ...]:
    if not isinstance(strategy, Strategy) or strategy.is_default:
        raise InvalidArgumentError(
            f"a cell runs on the replicas of a strategy, got {type(strategy).__name__}"
        )
    if isinstance(strategy, ParameterServerStrategy):
        raise InvalidArgumentError(
            f"a cell runs on replicas that run steps together, and {strategy!r} has none: schedule functions with "
            f"ClusterCoordinator(strategy).schedule(fn)"
        )
    if strategy.devices[0].kind == "TPU":
        raise InvalidArgumentError(
            "a TPU strategy compiles functions and cannot run a cell line by line: use strategy.run(fn)"
        )
    if not isinstance(group, str) or group not in get_args(Grouping):
        raise InvalidArgumentError(f"group must be one of {', '.join(get_args(Grouping))}, got {group!r}")
    size = strategy.num_replicas_in_sync
    try:
        chosen = tuple(range(size)) if replicas is None else tuple(sorted(set(map(operator.index, replicas))))
    except TypeError as error:
        raise InvalidArgumentError(
            f"replicas are their numbers, such as [0, 2], or None for all; got {replicas!r}"
        ) from error
    unknown = [rank for rank in chosen if not 0 <= rank < size]
    if unknown:
        there = "replica 0 only" if size == 1 else f"replicas 0 to {size - 1}"
        raise InvalidArgumentError(
            f"there is no replica {', '.join(map(str, unknown))}: the strategy has {there}"
        )
    if not chosen:
        raise InvalidArgumentError("no replica was chosen; leave the numbers out for all of them")
    return chosen


def _with_cells(outcome: Outcome) -> Outcome:
    return replace(outcome, traceback=with_cells(outcome.traceback)) if outcome.traceback else outcome
