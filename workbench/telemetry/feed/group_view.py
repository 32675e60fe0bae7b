"""The views of one group of replicas: lanes, lateness, pace, and stuck collectives."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from workbench.telemetry.feed.history import Texts, picked, selected
from workbench.telemetry.feed.lane_choice import Chosen, GroupKey, LaneChoice
from workbench.telemetry.feed.lateness import lateness
from workbench.telemetry.feed.pace import pace, waited_shares
from workbench.telemetry.feed.slowdown import slowdown
from workbench.telemetry.feed.step_times import step_times
from workbench.telemetry.feed.step_window import STEPS, step_window
from workbench.telemetry.feed.stuck import Ends, find_stuck
from workbench.telemetry.snapshot import GroupView, Lane, LaneItem, LastSeen, Onset
from workbench.telemetry.told import SentSteps, Told

_MAX_ITEMS: Final = 64
_MAX_RECORDS: Final = 16_384


def belongs(rows: np.ndarray, key: GroupKey) -> np.ndarray:
    """Mask of the rows of one group; `rows` has the columns of `history.KEY`."""
    run_id, group, generation = key
    mask: np.ndarray = rows["group"] == group
    mask &= (rows["generation"] == generation) & (rows["run_id"] == run_id)
    return mask


def group_view(
    key: GroupKey,
    *,
    collectives: np.ndarray,
    records: np.ndarray,
    pending: np.ndarray,
    last: dict[int, LastSeen],
    texts: Texts,
    choice: LaneChoice,
    version: int,
    now_ns: int,
    not_finite: tuple[Onset | None, Onset | None],
    ends: Ends,
    told: Told,
) -> GroupView:
    """The view of group `key`, with the user's collectives; only a stuck one may be workbench's own.

    Args:
      key: Which group and generation.
      collectives: Rows of `history.COLLECTIVE`, oldest first, of any group.
      records: Joined rows of `history.RECORD`, in the same order.
      pending: Rows of `history.RECORD` that still wait for those of other replicas.
      last: The newest collective of each replica of this group and generation.
      texts: The texts of the numbers.
      choice: Chooses the replicas that get a lane.
      version: The version of the feed.
      now_ns: The time, by the driver's clock; decides what counts as stuck.
      not_finite: Where NaN or infinity first went into one of its collectives, and where the one began that still does.
      ends: What the driver reported about this generation.
      told: What is known about the group besides records.
    """
    records = records[-_MAX_RECORDS:]  # the newest, because they are sorted by time
    collectives = _of_user(_remembered(collectives, records), key)
    own, waiting = selected(records, belongs(records, key)), selected(pending, belongs(pending, key))
    met = (own, waiting)
    n = max(int(rows["n"].max(initial=0)) for rows in (collectives, *met))
    records = selected(own, own["purpose"] == 0)
    chosen = choice.of(key, known=last, records=records, version=version)
    sent = told.sent
    window = step_window(records, sent)
    return GroupView(
        run_id=texts[key[0]],
        group=texts[key[1]],
        generation=key[2],
        n=n,
        lanes=_lanes(records, chosen.replicas, texts),
        hidden_lanes=chosen.hidden,
        hosts=_hosts(met, n),
        items=_items(collectives[-_MAX_ITEMS:], records, chosen, texts),
        steps=step_times(window, not_finite=texts.number("not finite")),
        lateness=lateness(window, chosen.replicas, told.contested_cores),
        stuck=find_stuck(waiting, last, texts, now_ns=now_ns, ends=ends),
        not_finite=not_finite[0],
        not_finite_now=not_finite[1],
        pace=pace(window, finite=texts.number("finite")),
        slowdown=slowdown(collectives, sent),
        told=told if sent is None else replace(told, sent=sent.newest(STEPS)),
    )


def busy_shares(key: GroupKey, records: np.ndarray, sent: SentSteps | None) -> dict[int, float]:
    """By replica, the share of its newest steps, 0 to 1, in which it did not wait for others, if known.

    Args:
      key: Which group and generation.
      records: Rows of `history.RECORD`, oldest first, of any group.
      sent: Which steps the driver sent, if known.
    """
    records = records[-_MAX_RECORDS:]
    window = step_window(selected(records, belongs(records, key) & (records["purpose"] == 0)), sent)
    if window is None:
        return {}
    shares = zip(window.replicas.tolist(), waited_shares(window), strict=True)
    return {replica: 1 - share for replica, share in shares if share is not None}


def _remembered(collectives: np.ndarray, records: np.ndarray) -> np.ndarray:
    """Leaves out the collective at which the records begin, because some of its records may have been dropped."""
    if not len(records) or not len(collectives) or collectives["ready_ns"][0] >= records["ready_ns"][0]:
        return collectives
    return selected(collectives, collectives["ready_ns"] > records["ready_ns"][0])


def _of_user(rows: np.ndarray, key: GroupKey) -> np.ndarray:
    return selected(rows, belongs(rows, key) & (rows["purpose"] == 0))


def _hosts(met: tuple[np.ndarray, np.ndarray], n: int) -> int:
    """The number of hosts of `n` replicas, from their records; 0 until each has one."""
    replicas, hosts = (
        np.unique(np.concatenate([rows[column] for rows in met])) for column in ("replica", "host")
    )
    return len(hosts) if len(replicas) == n else 0


def _lanes(records: np.ndarray, shown: np.ndarray, texts: Texts) -> tuple[Lane, ...]:
    lanes = []
    newest_first = records[::-1]
    replicas, first = np.unique(newest_first["replica"], return_index=True)
    where = dict(zip(replicas.tolist(), first.tolist(), strict=True))
    for replica in shown.tolist():
        label = f"r{replica}"
        if replica in where:
            row = newest_first[where[replica]]
            host, device = texts[int(row["host"])], texts[int(row["device"])]
            label = " ".join(part for part in (label, host, device) if part)
        lanes.append(Lane(replica, label))
    return tuple(lanes)


def _items(
    collectives: np.ndarray, records: np.ndarray, chosen: Chosen, texts: Texts
) -> tuple[LaneItem, ...]:
    if not len(collectives):
        return ()
    shown = chosen.replicas
    newest = np.flatnonzero(records["ready_ns"] >= collectives["ready_ns"].min())
    records = picked(records, newest[np.isin(records["replica"][newest], shown)])
    index_of = {position: index for index, position in enumerate(zip(*_positions(collectives), strict=True))}
    index = np.array(
        [index_of.get(position, -1) for position in zip(*_positions(records), strict=True)], np.int64
    )
    records, index = records[index >= 0], index[index >= 0]
    lane = np.searchsorted(shown, records["replica"])
    offset = records["clock_offset_ns"]
    enter = _by_lane(index, lane, records["t_enter_ns"] + offset, (len(collectives), len(shown)))
    end = _by_lane(index, lane, records["t_end_ns"] + offset, (len(collectives), len(shown)))
    sites = dict(zip(index.tolist(), records["site"].tolist(), strict=True))
    return tuple(
        _item(row, texts[sites.get(number, 0)], enter[number], end[number], texts, since=chosen.since)
        for number, row in enumerate(collectives)
    )


def _positions(rows: np.ndarray) -> tuple[list[int], list[int]]:
    return rows["step"].tolist(), rows["seq"].tolist()


def _by_lane(
    index: np.ndarray, lane: np.ndarray, times: np.ndarray, shape: tuple[int, int]
) -> list[tuple[int | None, ...]]:
    """Times by collective and lane; None for a missing one."""
    cells = np.full(shape, None, dtype=object)
    cells[index, lane] = times.tolist()
    return [tuple(line) for line in cells.tolist()]


def _item(
    row: np.void,
    site: str,
    enter_ns: tuple[int | None, ...],
    end_ns: tuple[int | None, ...],
    texts: Texts,
    *,
    since: int,
) -> LaneItem:
    run_id, group = texts[row["run_id"]], texts[row["group"]]
    generation, step, seq = int(row["generation"]), int(row["step"]), int(row["seq"])
    return LaneItem(
        key=f"{run_id}|{group}|{generation}|{step}|{seq}",
        op=texts[row["op"]],
        state=texts[row["state"]],
        site=site,
        step=step,
        seq=seq,
        size_bytes=int(row["bytes"]),
        ready_ns=int(row["ready_ns"]),
        err_ns=int(row["err_ns"]),
        mean_enter_ns=int(row["ready_ns"]) - int(row["wait_ns"]) // max(1, int(row["n"])),
        last_end_ns=int(row["end_ns"]),
        enter_ns=enter_ns,
        end_ns=end_ns,
        version=max(int(row["version"]), since),  # times are kept by lane, so they change with the lanes
    )
