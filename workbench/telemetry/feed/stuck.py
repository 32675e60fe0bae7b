"""Which collective hangs, which replicas wait in it, and what the missing ones did last."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from workbench.telemetry.feed.history import Texts
from workbench.telemetry.snapshot import LastSeen, Stuck

STUCK_AFTER_NS: Final = 1_000_000_000
_NEEDS_ALL: Final = ("all_reduce", "reduce_scatter", "all_gather", "barrier")


@dataclass(frozen=True, slots=True)
class Ends:
    """What the driver reported about one generation of a group.

    Attributes:
      lost: Lost replicas.
      failed: Steps that ended with an error, which the notebook has shown.
      positions: Where lost replicas were: the last step, the number of the last collective in it, and whether they were
        in it.
    """

    lost: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    positions: Mapping[int, tuple[int, int, bool]] = field(default_factory=dict)

    def were_in(self, key: tuple[int, int], replicas: Iterable[int]) -> tuple[int, ...]:
        """Those of the lost replicas that were in the collective with this step and number."""
        return tuple(replica for replica in replicas if self.positions.get(replica) == (*key, True))


def find_stuck(
    pending: np.ndarray, last: dict[int, LastSeen], texts: Texts, *, now_ns: int, ends: Ends = Ends()
) -> Stuck | None:
    """The oldest collective that replicas wait in, or could not complete because others were lost or late; or None.

    A step that failed otherwise does not count: all replicas were released, and the error says why. A replica whose
    record is missing although it has reached later collectives does not count as missing: its record was lost. Nor does
    one in a collective whose result all others have: a killed process loses records that it had not sent.

    Args:
      pending: Rows of `history.RECORD` of one group and generation for which some replica's record is missing.
      last: The newest collective of every replica of that generation.
      texts: The texts of the numbers in them.
      now_ns: The time, by the driver's clock; a collective first entered less than a second ago may merely not have
        been reported yet.
      ends: What the driver knows about replicas and steps.
    """
    pending = _after(pending, last)
    order = np.lexsort((pending["seq"], pending["step"]))
    rows = pending[order]
    common = _last_in_common(rows, texts)
    starts = np.flatnonzero(np.append(True, (np.diff(rows["step"]) != 0) | (np.diff(rows["seq"]) != 0)))
    ended = rows["state"] == texts.number("ok")
    waits = ~np.logical_and.reduceat(ended, starts) if len(rows) else ()
    entered, timeout = texts.number("entered"), texts.number("timeout")
    for part in itertools.compress(np.split(rows, starts[1:]), waits):
        first = part[0]
        if int(first["step"]) in ends.failed and not ends.lost:
            continue
        key = int(first["step"]), int(first["seq"])
        since = int((part["t_enter_ns"] + part["clock_offset_ns"]).min())
        waiting = tuple(sorted(part["replica"].tolist()))
        newest = {
            replica: _newest(replica, last.get(replica), common, texts)
            for replica in range(max(int(part["n"].max()), waiting[-1] + 1))
            if replica not in waiting
        }
        missing = tuple(replica for replica, seen in newest.items() if _position(seen) < key)
        waits_still = (part["state"] == entered) & ~np.isin(part["replica"], list(ends.lost))
        if lost := ends.lost.intersection(missing):
            state = "lost"
            # The others were on their way there when they were released; no replica would have waited for them for
            # long.
            missing = tuple(replica for replica in missing if replica in lost)
        elif waits_still.any():
            state = "waiting"
        else:
            state = "failed" if (part["state"] == timeout).any() else ""
        waited = now_ns - since if state == "waiting" else 0
        if missing and state and (state != "waiting" or waited >= STUCK_AFTER_NS):
            did = tuple(newest[replica] for replica in missing)
            op, site = texts[first["op"]], texts[first["site"]]
            reached = ends.were_in(key, missing)
            return Stuck(
                *key, op, site, waiting, missing, since, did, state, reached, seconds=waited // 1_000_000_000
            )
    return None


def _reached_text(stuck: Stuck) -> str:
    if set(stuck.reached) == set(stuck.missing):
        return "while in it"
    some = f", but replicas {{{', '.join(map(str, stuck.reached))}}} had" if stuck.reached else ""
    return f"that had not come to it{some}"


def _after(pending: np.ndarray, last: dict[int, LastSeen]) -> np.ndarray:
    """Rows of collectives that at least one replica has not passed.

    Lost records may leave thousands that all have passed.
    """
    n = int(pending["n"].max()) if len(pending) else 0
    if any(replica not in last for replica in range(n)) or not last:
        return pending
    step, seq = min(_position(seen) for seen in last.values())
    later: np.ndarray = pending[
        (pending["step"] > step) | ((pending["step"] == step) & (pending["seq"] > seq))
    ]
    return later


def _last_in_common(rows: np.ndarray, texts: Texts) -> np.void | None:
    """The newest row, in order, of a collective whose result needs all replicas; None if there is none."""
    done = rows["state"] == texts.number("ok")
    done &= np.isin(rows["op"], [texts.number(op) for op in _NEEDS_ALL])
    return rows[np.flatnonzero(done)[-1]] if done.any() else None


def _newest(replica: int, last: LastSeen | None, common: np.void | None, texts: Texts) -> LastSeen:
    """What a missing replica did last: from its own records, or from those of replicas that it met later.

    In the latter case its line of code is unknown: it may differ from that of the others.
    """
    last = last or LastSeen(replica, -1, -1, "", "")
    if common is None or (int(common["step"]), int(common["seq"])) <= _position(last):
        return last
    return LastSeen(replica, int(common["step"]), int(common["seq"]), texts[common["op"]], "", last.now)


def _position(seen: LastSeen) -> tuple[int, int]:
    return seen.step, seen.seq


def stuck_text(stuck: Stuck) -> str:
    """The banner, such as "step 3 all_reduce #513: waiting for replicas {3}; r3 last did …"."""
    replicas = ", ".join(str(replica) for replica in stuck.missing)
    how = {
        "waiting": f"waiting for replicas {{{replicas}}}",
        "lost": f"lost replicas {{{replicas}}} {_reached_text(stuck)}",
        "failed": f"failed, replicas {{{replicas}}} had not come to it",
    }[stuck.state]
    text = f"step {stuck.step} {stuck.op} #{stuck.seq + 1}: {how}"
    parts = []
    for last in stuck.last[:4]:
        who = "it" if len(stuck.last) == 1 else f"r{last.replica}"
        if last.now:
            parts.append(f"{who} is at {last.now}")
        if not last.op:
            parts.append(f"no record of {who} has arrived")
            continue
        where = f" at {last.site}" if last.site else ""
        step = "" if last.step == stuck.step else f"step {last.step} "
        parts.append(f"{who} last did {step}{last.op} #{last.seq + 1}{where}")
    return "; ".join((text, *parts))
