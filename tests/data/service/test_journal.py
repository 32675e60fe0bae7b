"""The journal of a dispatcher: it is written anew when it grows, and what others rely on reaches the disk first."""

from __future__ import annotations

import errno
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.data.service.servers import service
from workbench.data.service.dispatch import ledger as ledgers
from workbench.data.service.dispatch.journal import Journal, read_entries
from workbench.data.service.dispatch.ledger import Ledger
from workbench.data.service.dispatch.state import State
from workbench.errors import DataLossError

Entry = dict[str, Any]


def course(length: int, seed: int) -> list[Entry]:
    """Entries such as a dispatcher writes, of several jobs."""
    dice = random.Random(seed)
    entries: list[Entry] = [
        {
            "what": "dataset",
            "dataset": {
                "id": number,
                "fingerprint": str(number),
                "digest": "d",
                "splits": [10_000],
                "unsplittable": "",
                "endless": False,
                "compression": "",
            },
        }
        for number in (1000, 1001)
    ]
    entries += [{"what": what, "worker": f"w{dice.randrange(5)}"} for what in ("joined", "lost") * 4]
    lanes: dict[str, int] = {}
    state = State()
    for entry in entries:
        state.apply(entry)
    while len(entries) < length:
        job = f"job {dice.randrange(4)}"
        lane = {"job": job, "lane": dice.randrange(max(1, lanes.get(job, 0)))}
        new: Entry
        if job not in lanes:
            described = {
                "id": job,
                "name": job,
                "iteration": 0,
                "dataset": 1000,
                "mode": 1,
                "num_consumers": 0,
            }
            new = {"what": "job", "job": described}
            lanes[job] = 0
        elif lanes[job] < 2:
            new = {"what": "lane", "job": job, "worker": f"w{lanes[job]}"}
            lanes[job] += 1
        else:
            start = dice.randrange(200)
            new = dice.choice(
                [
                    {"what": "move", "worker": "w9", **lane},
                    {"what": "deal", "key": "0/0", "split": state.jobs[job].dealt.get("0/0", 0), **lane},
                    {
                        "what": "ack",
                        "consumer": f"c{dice.randrange(3)}",
                        "number": len(entries),
                        "accepted": [[start, start + dice.randrange(9)]],
                        "failed": 0,
                        **lane,
                    },
                    {"what": "end", "total": 200, **lane},
                ]
                + [{"what": "close", "job": job}, {"what": "forget", "job": job}] * (dice.random() < 0.02)
            )
            if new["what"] == "forget":
                del lanes[job]
        entries.append(new)
        state.apply(json.loads(json.dumps(new)))
    return entries


def seen(state: State) -> Any:
    """All that a state knows, comparable."""
    jobs = {
        job.id: (job.described, [lane.described for lane in job.lanes], job.dealt, job.closed)
        for job in state.jobs.values()
    }
    known = [repr(each) for each in state.datasets.values()]
    return json.loads(json.dumps([known, sorted(state.workers), jobs])), state.names


@pytest.mark.parametrize("seed", range(5))
def test_the_entries_of_a_state_make_the_same_state(seed: int) -> None:
    state, again = State(), State()
    for entry in course(600, seed):
        state.apply(entry)

    for entry in json.loads(json.dumps(list(state.entries()))):
        again.apply(entry)

    assert seen(again) == seen(state)
    for entry in course(700, seed)[600:]:
        state.apply(entry)
        again.apply(entry)
    assert seen(again) == seen(state)


def test_a_journal_that_grows_is_written_anew_and_means_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "_MOST_BYTES", 8_000)
    entries = course(1_200, 7)
    plain = State()
    kept = Ledger(str(tmp_path))
    largest = 0
    for entry in entries:
        plain.apply(entry)
        kept.write(entry)
        largest = max(largest, os.path.getsize(tmp_path / "journal"))
    kept.close()

    assert largest < 50_000 < sum(len(json.dumps(entry)) for entry in entries)
    again = Ledger(str(tmp_path))
    assert seen(again.state) == seen(plain)
    again.close()


@pytest.mark.parametrize("point", ["data_journal.before_replace", "data_journal.after_replace"])
def test_a_journal_is_whole_although_writing_it_anew_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(ledgers, "_MOST_BYTES", 8_000)
    plain, kept = State(), Ledger(str(tmp_path))

    def fail(at: str) -> None:
        if at == point:
            raise RuntimeError(f"injected at {at}")

    monkeypatch.setattr("workbench.data.service.dispatch.journal.fault", fail)

    def write_all() -> None:
        for entry in course(800, 3):
            plain.apply(entry)
            kept.write(entry)

    with pytest.raises(RuntimeError, match="injected"):
        write_all()
    kept.close()
    monkeypatch.undo()

    again = Ledger(str(tmp_path))
    assert seen(again.state) == seen(plain)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal", "journal.lock"]
    again.close()


def test_a_full_disk_leaves_the_journal_as_it_was_and_the_dispatcher_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "_MOST_BYTES", 8_000)
    plain, kept = State(), Ledger(str(tmp_path))

    def fail(at: str) -> None:
        if at == "data_journal.before_replace":
            raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("workbench.data.service.dispatch.journal.fault", fail)
    for entry in course(1_000, 3):
        plain.apply(entry)
        kept.write(entry)
    kept.close()

    again = Ledger(str(tmp_path))
    assert seen(again.state) == seen(plain)
    again.close()


def test_what_others_rely_on_reaches_the_disk_before_they_hear_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    append = Journal.append

    def spied(journal: Journal, entry: Entry, *, sync: bool = False) -> None:
        before = len(calls)
        append(journal, entry, sync=sync)
        if len(calls) > before:
            synced.append(entry["what"])

    calls: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append(file), fsync(file)))
    monkeypatch.setattr(Journal, "append", spied)
    with service(1, work_dir=tmp_path, fault_tolerant_mode=True) as target:
        distributed = wb.data.service.distribute("distributed_epoch", target)
        assert len(list(wb.data.Dataset.range(300).apply(distributed))) == 300

    assert {"dataset", "job", "lane", "end", "close"} <= set(synced)
    assert not {"ack", "deal"} & set(synced)
    what = {entry["what"] for entry in read_entries((tmp_path / "journal").read_bytes(), "")[0]}
    assert {"ack", "deal"} <= what


def test_an_entry_that_fits_no_other_names_its_journal(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal"))
    journal.append({"what": "close", "job": "of which nobody has heard"})
    journal.close()
    for _ in range(2):  # it is not left open
        with pytest.raises(DataLossError, match="an entry that fits no other") as caught:
            Ledger(str(tmp_path))
        assert caught.value.file == str(tmp_path / "journal")
