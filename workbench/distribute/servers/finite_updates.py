"""require_finite: refuses an update whose result would contain a NaN or an infinity, before the variable changes.

The update is applied to a copy of the part that it changes: the variable, or some rows, and their slots. If an update
computes nothing, its values are checked first, and it is applied to a copy only if it may be refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from workbench.backends.numpy import can_be_infinite
from workbench.debugging.operands import not_finite
from workbench.distribute.servers.held import Held, change
from workbench.distribute.servers.update_rules import rule_of
from workbench.errors import NotFinite
from workbench.runtime.services.frames import Array, Fields

_AS_SENT: Final = frozenset(("assign", "scatter_update", "set_slots"))
"""Updates that only set values."""


def require_finite(held: Held, fields: Fields, arrays: list[Array], where: str, sender: str) -> None:
    """Returns if the variable and its optimizer state would be finite after an update.

    Args:
      held: The variable that the update would change; it stays unchanged.
      fields: The update.
      arrays: Its arrays.
      where: The server, for the error, such as "on ps:1".
      sender: The sender, for the error, such as "on worker 0, in step".

    Raises:
      NotFinite: if not; names variable, server, sender, elements and the remedy.
    """
    how = fields["how"]
    if not can_be_infinite(held.array.dtype) or _sent_finite(held, how, arrays):
        return
    name = fields["key"].rpartition("@")[0]
    trial, own, rows = _changed_rows(held, fields, arrays)
    with np.errstate(all="ignore"):
        change(trial, fields, own)
    changed = trial.slots if how == "set_slots" else {"": trial.array, **trial.slots}
    for slot, array in changed.items():
        if not (found := not_finite(array)):
            continue
        if rows is not None:
            row = rows[np.argwhere(~np.isfinite(array))[0][0]]
            found += f" in the rows that it changes; row {row} of '{name}:0'"
        old = held.slots.get(slot) if slot else held.array
        bad_before = old is not None and bool(not_finite(old if rows is None else old[rows]))
        raise NotFinite(
            f"{_named(fields)} leaves {f'the slot {slot!r} of ' if slot else ''}variable '{name}:0' not finite "
            f"{where}; it was sent {sender}: {found}. The update was not made, and the variable is as before. "
            f"{_advice(how, arrays, bad_before)}"
        )


def _sent_finite(held: Held, how: str, arrays: list[Array]) -> bool:
    """Whether an update only sets values, all of them finite and of the variable's dtype."""
    if how not in _AS_SENT:
        return False
    values = arrays if how == "set_slots" else arrays[:1]  # otherwise rows follow
    return all(array.dtype == held.array.dtype and not not_finite(array) for array in values)


def _changed_rows(held: Held, fields: Fields, arrays: list[Array]) -> tuple[Held, list[Array], Array | None]:
    """A copy of the part that an update changes, the arrays for that copy, and the part's rows (None for all)."""
    fixed = 1 + len(fields.get("slots", ()))  # the values, the slots' values, the rows
    where: Any = ...
    rows = None
    if len(arrays) > fixed:
        where, places = np.unique(arrays[fixed], return_inverse=True)
        rows = where
        arrays = [*arrays[:fixed], places.reshape(arrays[fixed].shape)]
    slots = {name: held.slots[name][where].copy() for name in _slots(fields) if name in held.slots}
    return Held(held.array[where].copy(), slots=slots, steps=held.steps), arrays, rows


def _slots(fields: Fields) -> Iterable[str]:
    """Names of the slots that an update changes."""
    match fields["how"]:
        case "step":
            return rule_of(fields["rule"]).slots
        case "set":
            return list(fields["slots"])
    return ()


def _named(fields: Fields) -> str:
    match fields["how"]:
        case "step":
            return f"the step {fields['rule']['kind']}"
        case "set":
            return f"the step {fields['name']}"
        case "set_slots":
            return "SlotState.load_state_dict"
        case how:
            return str(how)


def _advice(how: str, sent: list[Array], bad_before: bool) -> str:
    if how in _AS_SENT:
        return "What was sent is not finite: look at how it was computed"
    if bad_before:
        return "It was not finite before either: assign finite values, or restore a checkpoint"
    if how == "set":
        return "Look at what the step computes there, such as a division by a slot that is zero"
    if not_finite(sent[0]):
        return "What was sent is not finite: look at how it was computed"
    if how == "step":
        return "Clip the gradient, or give the optimizer a smaller learning_rate or a larger epsilon"
    return "What was sent is finite: send smaller numbers, or give the variable a wider dtype"
