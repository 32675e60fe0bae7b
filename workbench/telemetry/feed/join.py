"""Joins the records of a collective's replicas, and derives skew, wait and who was late."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.telemetry.feed.history import COLLECTIVE, KEY, changes, picked


@dataclass(frozen=True, slots=True)
class Joined:
    """Result of `join`.

    Attributes:
      collectives: Those with the final records of all replicas; rows of `history.COLLECTIVE`.
      records: Their records, with `late_ns` and `ready_ns`; rows of `history.RECORD`.
      pending: Records of the others, one per replica and collective.
    """

    collectives: np.ndarray
    records: np.ndarray
    pending: np.ndarray


def join(records: np.ndarray, *, entered: int, ok: int, version: int) -> Joined:
    """Joins records over replicas by (run_id, generation, group, step, seq).

    If a replica has several records, the final one counts, or else the last.

    Args:
      records: Rows of `history.RECORD`, pending ones of earlier calls first; column `n` must be known.
      entered: Number of the text "entered".
      ok: Number of the text "ok".
      version: Put into the column `version` of completed collectives.
    """
    final = records["state"] != entered
    order = np.lexsort((final, records["replica"], *(records[name] for name in reversed(KEY))))
    new_collective = changes(records, KEY, order)
    new_replica = new_collective | changes(records, ("replica",), order)
    chosen = np.append(new_replica[1:], True)[: len(order)]  # the last record of each replica
    # Numbers rows first, because a replica's first chosen row may not be the start of its collective.
    of = np.cumsum(new_collective)[chosen] - 1
    order = order[chosen]
    starts = np.searchsorted(of, np.arange(of[-1] + 1 if len(of) else 0))
    if not len(starts):
        return Joined(np.zeros(0, COLLECTIVE), records, records)
    finished = np.add.reduceat(final[order].astype(np.int64), starts)
    complete = finished >= np.maximum.reduceat(records["n"][order], starts)
    mask = complete[of]
    done = picked(records, order[mask])
    sizes = np.diff(np.append(starts, len(order)))[complete]
    return Joined(_collectives(done, sizes, ok, version), done, picked(records, order[~mask]))


def _collectives(rows: np.ndarray, sizes: np.ndarray, ok: int, version: int) -> np.ndarray:
    """One row per collective; the i-th has `sizes[i]` rows, whose `late_ns` and `ready_ns` are filled in."""
    result = np.zeros(len(sizes), COLLECTIVE)
    if not len(sizes):
        return result
    starts = np.cumsum(sizes) - sizes
    of = np.repeat(np.arange(len(sizes)), sizes)
    enter = rows["t_enter_ns"] + rows["clock_offset_ns"]
    end = rows["t_end_ns"] + rows["clock_offset_ns"]
    for name in (*KEY, "op", "redop", "dtype", "algorithm", "packs", "transport", "purpose", "n"):
        result[name] = rows[name][starts]
    for name in ("count", "bytes"):  # parts differ in size: use the largest
        result[name] = np.maximum.reduceat(rows[name], starts)
    result["enter_ns"] = np.minimum.reduceat(enter, starts)
    result["ready_ns"] = np.maximum.reduceat(enter, starts)
    result["end_ns"] = np.maximum.reduceat(end, starts)
    rows["late_ns"] = enter - result["enter_ns"][of]
    rows["ready_ns"] = result["ready_ns"][of]
    result["wait_ns"] = np.add.reduceat(rows["ready_ns"] - enter, starts)
    result["spent_ns"] = np.add.reduceat(np.maximum(end - enter, 0), starts)
    # Replicas of one host share its clock, whatever its offset from the driver's.
    hosts = rows["host"]
    several = np.maximum.reduceat(hosts, starts) != np.minimum.reduceat(hosts, starts)
    result["err_ns"] = np.where(several, 2 * np.maximum.reduceat(rows["clock_err_ns"], starts), 0)
    last = np.lexsort((-rows["replica"], enter, of))[starts + sizes - 1]
    result["late_replica"], result["late_host"] = rows["replica"][last], hosts[last]
    bad = np.maximum.reduceat(np.where(rows["state"] == ok, -1, rows["state"]), starts)
    result["state"] = np.where(bad < 0, ok, bad)
    result["version"] = version
    return result
