"""Parallel `map`: by threads or processes, in order, ended with its iterator; fault row 33."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from workbench import tree
from workbench.data import AUTOTUNE, Dataset, Options, ThreadingOptions
from workbench.data.background import parallel_calls
from workbench.data.background.call_process import portable
from workbench.data.background.process_pool import ProcessPool
from workbench.data.background.shared_state import shared_state
from workbench.data.cost.profile import StageProfile
from workbench.data.meter import UNMEASURED, Meter
from workbench.data.passes import Pass
from workbench.data.tables import Failed
from workbench.errors import InvalidArgumentError, UnavailableError

WAIT_SECONDS = 30.0


def ints(dataset: Any) -> list[int]:
    return [int(element) for element in dataset]


def by(kind: str, dataset: Dataset) -> Dataset:
    options = Options()
    options.threading.worker_kind = kind
    return dataset.with_options(options)


def processes() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "call_server" in command(child)]


def command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.ZombieProcess:  # it was killed, and nothing has waited for it yet
        return ""


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "wb-map"]


@pytest.fixture
def hanging() -> Iterator[Callable[[Any], Any]]:
    over = threading.Event()

    def hang(x: Any) -> Any:
        assert over.wait(WAIT_SECONDS)
        return x

    yield hang
    over.set()


def fails_at_2(x: Any) -> Any:
    if x == 2:
        raise LookupError("nothing at two")
    return x * 10


def hangs_in_python(x: Any) -> Any:
    while x == x:
        pass


def pid_of(x: Any) -> Any:
    return os.getpid()


@pytest.mark.parametrize("kind", ["THREADS", "PROCESSES"])
def test_results_and_errors_keep_their_places(kind: str) -> None:
    elements = iter(by(kind, Dataset.range(6).map(fails_at_2, num_parallel_calls=2, name="ten")))
    assert [int(next(elements)) for _ in range(2)] == [0, 10]
    with pytest.raises(LookupError, match="nothing at two") as caught:
        next(elements)
    notes = caught.value.__notes__
    assert notes[0] == "in stage map(fails_at_2) 'ten' of a dataset, at element 2"
    assert len(notes) == 1 or 'raise LookupError("nothing at two")' in notes[1]
    assert len(notes) == (2 if kind == "PROCESSES" else 1)
    assert ints(elements) == [30, 40, 50]
    assert (threads(), processes()) == ([], [])


def test_processes_get_arrays_texts_and_structures_and_give_them() -> None:
    dataset = Dataset.from_tensor_slices({"a": np.arange(12.0).reshape(4, 3), "b": [b"x", b"y", b"z", b""]})

    def both(row: Any) -> Any:
        more = row["a"] + 1
        return {"sum": more.sum(), "text": row["b"] * 2, "row": more}

    found = list(by("PROCESSES", dataset.map(both, num_parallel_calls=2)))
    assert [float(each["sum"]) for each in found] == [6.0, 15.0, 24.0, 33.0]
    assert [each["text"] for each in found] == [b"xx", b"yy", b"zz", b""]
    np.testing.assert_array_equal(found[3]["row"], [10.0, 11.0, 12.0])


def test_what_processes_print_appears_where_prints_of_threads_do(capsys: pytest.CaptureFixture[str]) -> None:
    def prints(x: Any) -> Any:
        print("element", int(x))
        print("no end of line", int(x), end="", file=sys.stderr)
        return x

    for kind in ("THREADS", "PROCESSES"):
        assert ints(by(kind, Dataset.range(3).map(prints, num_parallel_calls=1))) == [0, 1, 2]
        printed = capsys.readouterr()  # only of this process's `sys.stdout`
        assert printed.out == "element 0\nelement 1\nelement 2\n"
        assert printed.err == "".join(f"no end of line {x}" for x in range(3))


def test_what_a_process_prints_before_it_fails_or_ends_is_not_lost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def prints(x: Any) -> Any:
        print("x" * 100_000)
        if x == 0:
            raise LookupError("nothing at zero")
        os.kill(os.getpid(), signal.SIGKILL)

    elements = iter(by("PROCESSES", Dataset.range(2).map(prints, num_parallel_calls=1)))
    with pytest.raises(LookupError, match="nothing at zero"):
        next(elements)
    with pytest.raises(UnavailableError, match="was killed by SIGKILL"):
        next(elements)
    assert capsys.readouterr().out == ("x" * 100_000 + "\n") * 2


def test_each_call_at_a_time_has_a_process() -> None:
    pids = set(ints(by("PROCESSES", Dataset.range(40).map(pid_of, num_parallel_calls=2))))
    assert os.getpid() not in pids
    assert len(pids) <= 2


def test_a_process_that_is_killed_costs_one_element() -> None:
    def dies(x: Any) -> Any:
        if x == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    elements = iter(by("PROCESSES", Dataset.range(8).map(dies, num_parallel_calls=1)))
    assert [int(next(elements)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(UnavailableError, match=r"map\(dies\): the process.*was killed by SIGKILL"):
        next(elements)
    assert ints(elements) == [4, 5, 6, 7]


def test_a_process_goes_on_while_nobody_fetches_its_answers(tmp_path: Path) -> None:
    def marks(x: Any) -> Any:
        (tmp_path / str(x)).touch()
        return x

    elements = iter(by("PROCESSES", Dataset.range(9).map(marks, num_parallel_calls=1)))
    assert int(next(elements)) == 0
    deadline = time.monotonic() + WAIT_SECONDS
    while not (tmp_path / "2").exists():  # 1 was in progress, 2 came after it
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    assert ints(elements) == list(range(1, 9))


def test_large_arrays_travel_both_ways_at_a_time() -> None:
    def negative(row: Any) -> Any:
        return -row

    rows = Dataset.from_tensor_slices(np.ones((6, 1_000_000)))
    sums = [
        float(row.sum())
        for row in by("PROCESSES", rows.map(negative, num_parallel_calls=1)).as_numpy_iterator()
    ]
    assert sums == [-1e6] * 6


class OnlyHere:
    """Cannot be rebuilt in another process."""

    def __reduce__(self) -> Any:
        return only_in, (os.getpid(),)


def only_in(pid: int) -> OnlyHere:
    if pid != os.getpid():
        raise LookupError(f"belongs to process {pid}")
    return OnlyHere()


def test_a_function_that_cannot_be_rebuilt_in_a_process_says_why() -> None:
    here = OnlyHere()
    elements = iter(by("PROCESSES", Dataset.range(2).map(lambda x: (here, x)[1], num_parallel_calls=1)))
    for _ in range(2):
        with pytest.raises(LookupError, match="belongs to process"):
            next(elements)


class FramesError(Exception):
    """Tells how many frames its traceback has, in the process that raised it."""

    def __str__(self) -> str:
        return f"{len(list(traceback.walk_tb(self.__traceback__)))} frames"

    def __reduce__(self) -> Any:
        raise TypeError


class NeverRebuilt:
    """Cannot be rebuilt at all."""

    def __reduce__(self) -> Any:
        return raise_frames_error, ()


def raise_frames_error() -> None:
    raise FramesError


def test_the_traceback_of_a_function_that_cannot_be_rebuilt_does_not_grow() -> None:
    never = NeverRebuilt()
    elements = iter(by("PROCESSES", Dataset.range(4).map(lambda x: (never, x)[1], num_parallel_calls=1)))
    told = []
    for _ in range(4):
        with pytest.raises(RuntimeError, match=r"FramesError: \d+ frames") as raised:
            next(elements)
        told.append(str(raised.value))
        del raised  # its traceback holds this frame, and so the iterator and its process
    assert len(set(told)) == 1


@pytest.mark.parametrize("dying", [1, 2])
def test_what_waits_for_killed_processes_is_called_although_memory_is_full(
    tmp_path: Path, dying: int
) -> None:
    count = dying + 1
    last_sent = str(2 * count - 1)  # to the surviving process, as its second call
    structure = tree.flatten(0)[1]

    def dies_at_first(leaves: list[Any], structure: Any, index: int) -> tuple[list[Any], Any]:
        deadline = time.monotonic() + WAIT_SECONDS
        while index < dying:
            if (tmp_path / last_sent).exists() or time.monotonic() > deadline:
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Event().wait(0.01)
        (tmp_path / str(index)).touch()
        return leaves, structure

    pool = ProcessPool(
        portable(dies_at_first), "map(dies_at_first)", count, arrival=None, most_bytes=1, meter=UNMEASURED
    )
    tasks = ((index, ([np.full(9, index)], structure, None)) for index in range(6 * count))
    runs = pool.run(tasks)
    failed = [next(runs)]
    deadline = time.monotonic() + WAIT_SECONDS
    while len(processes()) > 1:
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    failed += [next(runs) for _ in range(1, dying)]
    for run in failed:
        assert isinstance(run, Failed)
        assert "was killed by SIGKILL" in str(run.error)
    assert [int(run.table.row(0)[0][0]) for run in runs] == list(range(dying, 6 * count))


def test_an_interrupt_ends_processes_in_a_call_that_never_returns() -> None:
    started = threading.Event()

    def first(x: Any) -> Any:
        started.set()
        return x

    def interrupt() -> None:
        started.wait(WAIT_SECONDS)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    hung = Dataset.range(9).map(first).map(hangs_in_python, num_parallel_calls=2).prefetch(1)
    elements = iter(by("PROCESSES", hung))
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        next(elements)
    interrupting.join(WAIT_SECONDS)
    assert processes() == []


def test_processes_end_with_the_process_that_started_them(tmp_path: Path) -> None:
    """Also: a script without a guard around its main part, in a process that may have no children."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import multiprocessing, os, signal
        import workbench as wb
        multiprocessing.current_process()._config["daemon"] = True
        options = wb.data.Options()
        options.threading.worker_kind = "PROCESSES"
        def f(x):
            return os.getpid()
        dataset = wb.data.Dataset.range(4).repeat().map(f, num_parallel_calls=1).with_options(options)
        elements = iter(dataset)
        print(int(next(elements)), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    child = int(done.stdout)
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(child).wait(WAIT_SECONDS)


def test_a_function_that_cannot_travel_is_refused_with_the_remedy() -> None:
    lock = threading.Lock()
    elements = iter(by("PROCESSES", Dataset.range(4).map(lambda x: (lock, x)[1], num_parallel_calls=2)))
    with pytest.raises(InvalidArgumentError, match=r"cannot be sent to another process.*worker_kind"):
        next(elements)


def test_an_interrupt_does_not_wait_for_a_function_that_hangs(hanging: Callable[[Any], Any]) -> None:
    def interrupt(x: Any) -> Any:
        if x == 0:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return hanging(x)

    with pytest.raises(KeyboardInterrupt):
        next(iter(Dataset.range(4).map(interrupt, num_parallel_calls=2)))


def test_a_function_that_changes_its_input_names_stage_and_element() -> None:
    def changes(row: Any) -> Any:
        row += 1
        return row

    rows = Dataset.from_tensor_slices(np.zeros((3, 2)))
    for dataset in (rows.map(changes), rows.map(changes, num_parallel_calls=2)):
        with pytest.raises(ValueError, match="read-only") as caught:
            next(iter(dataset))
        assert caught.value.__notes__ == ["in stage map(changes) of a dataset, at element 0"]


def test_out_of_order_one_that_is_slow_holds_up_no_other() -> None:
    rest_is_done = threading.Event()

    def slow(x: Any) -> Any:
        if x == 0:
            assert rest_is_done.wait(WAIT_SECONDS)
        return x

    options = Options()
    options.deterministic = False
    elements = iter(Dataset.range(4).map(slow, num_parallel_calls=2).with_options(options))
    assert sorted(int(next(elements)) for _ in range(3)) == [1, 2, 3]
    rest_is_done.set()
    assert ints(elements) == [0]


class Clock:
    """A clock that only calls of the function move."""

    def __init__(self, wall: float, cpu: float, pair: float) -> None:
        self.wall, self.cpu, self.pair = wall, cpu, pair
        self.now = self.spent = 0.0
        self.lock = threading.Lock()

    def __call__(self, x: Any) -> Any:
        with self.lock:
            self.now += self.wall if threading.current_thread() is threading.main_thread() else self.pair
            self.spent += self.cpu
        return x


@pytest.mark.parametrize(
    ("clock", "count", "kind", "note"),
    [
        (Clock(10e-6, 10e-6, 0), 1, "threads", "less than handing it over"),
        (Clock(2e-3, 0.0, 0), 16, "threads", "waits for 100\u202f%"),
        (Clock(2e-3, 2e-3, 1e-3), 3, "threads", "lets other threads run"),
        (Clock(2e-3, 2e-3, 2e-3), 1, "threads", "holds Python's lock; it refers to Clock"),
    ],
)
def test_autotune_measures_and_says_what_it_chose(
    clock: Clock, count: int, kind: str, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _tuned(clock, lambda x: clock(x), monkeypatch)
    assert found.workers is not None
    assert (found.workers.count, found.workers.kind, found.workers.chosen) == (count, kind, True)
    assert note in found.note


def test_autotune_takes_processes_for_functions_that_hold_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()  # each reading of a clock is a second after the one before, on any thread
    monkeypatch.setattr(parallel_calls, "perf_counter", lambda: next(ticks) * 1.0)
    monkeypatch.setattr(parallel_calls, "thread_time", lambda: next(ticks) * 1.0)
    monkeypatch.setattr(parallel_calls, "_PAIR_GAIN", 0.0)
    monkeypatch.setattr(parallel_calls, "cores", lambda: 2)
    pids = ints(Dataset.range(40).map(pid_of, num_parallel_calls=AUTOTUNE))
    assert pids[:10] == [os.getpid()] * 10
    assert os.getpid() not in pids[10:]


@pytest.mark.parametrize("limit", ["cpu_budget", "private_threadpool_size"])
def test_autotune_stays_within_the_options(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(2e-3, 0.0, 0)
    options = Options()
    setattr(options.autotune if limit == "cpu_budget" else options.threading, limit, 5)
    found = _tuned(clock, lambda x: clock(x), monkeypatch, options)
    assert found.workers is not None
    assert found.workers.count == 5


def _clocks(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_calls, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(parallel_calls, "thread_time", lambda: clock.spent)
    monkeypatch.setattr(parallel_calls, "cores", lambda: 3)


def _tuned(
    clock: Clock, function: Any, monkeypatch: pytest.MonkeyPatch, options: Options | None = None
) -> StageProfile:
    _clocks(clock, monkeypatch)
    dataset = Dataset.range(50).map(function, num_parallel_calls=AUTOTUNE)
    if options is not None:
        dataset = dataset.with_options(options)
    meter = Meter(dataset)
    found = [run.table.row(0) for run in dataset.open(Pass(Dataset, meter=meter, options=dataset.options()))]
    assert [int(leaf) for (leaf,) in found] == list(range(50))
    return meter.pipelines()[0].stages[-1]


SEEN: list[int] = []
SCALE = 3
TABLE = np.arange(5)


def test_what_a_process_would_have_a_copy_of() -> None:
    seen, number, row = {}, 2, np.zeros(3)  # type: ignore[var-annotated]

    def counts(x: Any) -> Any:
        nonlocal number
        number += 1
        return x

    def writes(x: Any) -> Any:
        row[0] = x
        return x

    assert shared_state(lambda x: x * SCALE + TABLE[0] + len(str(x))) == ""
    assert shared_state(lambda x: np.sqrt(x) + row.sum()) == ""
    assert shared_state(lambda x: SEEN.append(x)) == "list 'SEEN'"
    assert shared_state(lambda x: seen.get(x)) == "dict 'seen'"
    assert shared_state(counts) == "variable 'number'"
    assert shared_state(writes) == "ndarray 'row'"
    assert shared_state(lambda x: counts(x)) == "variable 'number'"
    assert shared_state(lambda x: [y * x for y in range(x)]) == ""


def test_threads_start_only_for_elements_that_no_other_has_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[str] = []
    start = threading.Thread.start

    def counted(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    assert ints(Dataset.range(3).map(lambda x: x, num_parallel_calls=2**31)) == [0, 1, 2]
    assert 1 <= started.count("wb-map") <= 3


def test_a_great_number_of_calls_at_a_time_reads_no_endless_dataset_to_its_end() -> None:
    iterator = iter(Dataset.counter().map(lambda x: x, num_parallel_calls=2**31))
    assert [int(next(iterator)) for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("calls", [0, -2])
def test_a_number_of_calls_that_is_none_is_refused(calls: int) -> None:
    with pytest.raises(InvalidArgumentError, match="map: num_parallel_calls"):
        Dataset.range(2).map(lambda x: x, num_parallel_calls=calls)


def test_an_unknown_kind_of_worker_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="THREADS, PROCESSES"):
        ThreadingOptions().worker_kind = "GREENLETS"  # type: ignore[assignment]


def test_an_error_that_is_kept_keeps_the_threads_no_longer_than_itself() -> None:
    with pytest.raises(LookupError) as caught:
        list(Dataset.range(9).map(fails_at_2, num_parallel_calls=2))
    del caught
    gc.collect()
    assert threads() == []
