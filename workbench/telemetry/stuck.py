"""Which collective does not get on, who waits in it and what the missing replicas did last."""

from __future__ import annotations

import itertools

import numpy as np

from workbench.telemetry.history import Texts
from workbench.telemetry.snapshot import LastSeen, Stuck


def find_stuck(
    pending: np.ndarray, last: dict[int, LastSeen], texts: Texts, *, before_ns: int
) -> Stuck | None:
    """The oldest collective that replicas wait in, or None.

    A replica whose record is missing although it has gone on to later collectives is not waited for: its
    record was lost on the way. Nor is one waited for in a collective whose result all others have: a process that
    is killed takes along what it had not sent yet, and the records of those who were with it stay alone.

    Args:
      pending: Rows of `history.RECORD` of one group and generation of which some replica's record is missing.
      last: The newest collective of every replica of that generation.
      texts: What the numbers in them mean.
      before_ns: Only a collective first entered before this time, driver's clock, counts; a younger one may
        merely not have been reported yet.
    """
    pending = _after(pending, last)
    order = np.lexsort((pending["seq"], pending["step"]))
    rows = pending[order]
    starts = np.flatnonzero(np.append(True, (np.diff(rows["step"]) != 0) | (np.diff(rows["seq"]) != 0)))
    ended = rows["state"] == texts.number("ok")
    waits = ~np.logical_and.reduceat(ended, starts) if len(rows) else ()
    for part in itertools.compress(np.split(rows, starts[1:]), waits):
        first = part[0]
        key = int(first["step"]), int(first["seq"])
        since = int((part["t_enter_ns"] + part["clock_offset_ns"]).min())
        waiting = tuple(sorted(part["replica"].tolist()))
        missing = tuple(
            replica
            for replica in range(max(int(part["n"].max()), waiting[-1] + 1))
            if replica not in waiting and (replica not in last or _position(last[replica]) < key)
        )
        if missing and since <= before_ns:
            seen = tuple(last.get(replica, LastSeen(replica, -1, -1, "", "")) for replica in missing)
            op, site = texts[first["op"]], texts[first["site"]]
            return Stuck(*key, op, site, waiting, missing, since, seen)
    return None


def _after(pending: np.ndarray, last: dict[int, LastSeen]) -> np.ndarray:
    """Only what at least one replica has not passed; lost records may leave thousands that all have."""
    n = int(pending["n"].max()) if len(pending) else 0
    if any(replica not in last for replica in range(n)) or not last:
        return pending
    step, seq = min(_position(seen) for seen in last.values())
    later: np.ndarray = pending[
        (pending["step"] > step) | ((pending["step"] == step) & (pending["seq"] > seq))
    ]
    return later


def _position(seen: LastSeen) -> tuple[int, int]:
    return seen.step, seen.seq


def stuck_text(stuck: Stuck) -> str:
    """The banner, such as "step 3 seq 512 all_reduce: waiting for replicas {3}; r3 last did …"."""
    replicas = ", ".join(str(replica) for replica in stuck.missing)
    text = f"step {stuck.step} seq {stuck.seq} {stuck.op}: waiting for replicas {{{replicas}}}"
    parts = []
    for last in stuck.last[:4]:
        who = "it" if len(stuck.last) == 1 else f"r{last.replica}"
        if not last.op:
            parts.append(f"no record of {who} has arrived")
            continue
        where = f" at {last.site}" if last.site else ""
        step = "" if last.step == stuck.step else f"step {last.step} "
        parts.append(f"{who} last did {step}seq {last.seq} {last.op}{where}")
    return "; ".join((text, *parts))
