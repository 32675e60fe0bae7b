"""Checks and dumps of what runs neither in the notebook nor in a replica function: scheduled functions, input."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.distribute.coordinator.conftest import three as three
from tests.until import until
from workbench import debugging, distribute
from workbench.data import Dataset
from workbench.debugging import numerics
from workbench.debugging.dump.reader import read_dump
from workbench.debugging.dump.session import current_writer
from workbench.distribute.coordinator import cluster_coordinator, lane
from workbench.errors import CaptureError, NotFinite, NotFoundError
from workbench.runtime.services.service import Connection, ServiceAddress

pytestmark = pytest.mark.filterwarnings("ignore:(invalid value|divide by zero):RuntimeWarning")


@pytest.fixture
def enabled() -> Iterator[None]:
    """With the check on."""
    debugging.enable_check_numerics()
    yield
    debugging.disable_check_numerics()


@pytest.fixture
def coordinator(three: Any) -> Iterator[Any]:
    """Two workers and a server, with a variable `table`."""
    strategy = distribute.ParameterServerStrategy(servers=1)
    yield distribute.coordinator.ClusterCoordinator(strategy)
    strategy.close()


def _log(x: Any) -> Any:
    return np.log(np.asarray([x]) - 2.0)


def _logs(count: int) -> Dataset:
    return Dataset.range(count).map(_log)


@pytest.mark.usefixtures("enabled")
def test_a_scheduled_function_is_stopped_at_its_first_bad_operation(coordinator: Any) -> None:
    assert coordinator.schedule(_log, args=(3.0,)).fetch() == 0
    coordinator.schedule(_log, args=(1.0,))

    told = r"`np.log\(np.asarray\(\[x\]\) - 2.0\)` makes a NaN .* on worker [01], in _log, at test_observed_\w+.py:\d+"
    with pytest.raises(NotFinite, match=told):
        coordinator.join()


@pytest.mark.usefixtures("enabled")
def test_a_bad_update_of_a_server_and_a_bad_result_name_worker_and_function(coordinator: Any) -> None:
    with coordinator.strategy.scope():
        table = wb.Variable(np.zeros(3), name="table")

    def update() -> None:
        table.assign_add(np.array([0, np.nan, 0]))

    def give() -> Any:
        return np.array([np.inf])

    coordinator.schedule(update)
    with pytest.raises(
        NotFinite, match=r"assign_add of variable 'table:0' .* on worker [01], in .*update: 1 NaN"
    ):
        coordinator.join()
    coordinator.schedule(give)
    with pytest.raises(NotFinite, match=r"what .*give returned is not finite on worker [01], in .*give"):
        coordinator.join()
    assert table.numpy().tolist() == [0, 0, 0]


@pytest.mark.usefixtures("enabled")
def test_a_dataset_of_workers_is_checked(coordinator: Any) -> None:
    iterator = iter(coordinator.create_per_worker_dataset(_logs(3)))
    coordinator.schedule(lambda it: next(it), args=(iterator,))

    with pytest.raises(NotFinite, match="makes a NaN"):
        coordinator.join()


def test_functions_are_checked_while_it_is_enabled_and_no_longer(coordinator: Any) -> None:
    step = wb.function(_log)
    assert np.isnan(coordinator.schedule(step, args=(1.0,)).fetch())
    debugging.enable_check_numerics()
    try:
        coordinator.schedule(step, args=(1.0,))
        with pytest.raises(NotFinite):
            coordinator.join()
    finally:
        debugging.disable_check_numerics()
    assert np.isnan(coordinator.schedule(step, args=(1.0,)).fetch())
    assert np.isnan(coordinator.schedule(lambda: next(iter(_logs(1)))).fetch())


@pytest.mark.parametrize("threads", [0, 1])
def test_what_another_strategy_runs_unchecked_leaves_this_one_checked(
    three: Any, tmp_path: Path, threads: int
) -> None:
    begun, go = str(tmp_path / "begun"), str(tmp_path / "go")

    def read() -> None:
        import os
        import time

        def after_go(x: Any) -> Any:
            os.close(os.open(begun, os.O_CREAT))
            while not os.path.exists(go):
                time.sleep(0.001)
            return x

        values = Dataset.from_tensor_slices(np.array([1.0, np.nan]))
        for _ in values.map(after_go, num_parallel_calls=threads or None):
            pass

    strategies = [distribute.ParameterServerStrategy(servers=2) for _ in range(2)]
    checked, unchecked = (distribute.coordinator.ClusterCoordinator(strategy) for strategy in strategies)
    with contextlib.ExitStack() as closing:
        for strategy in strategies:
            closing.callback(strategy.close)
        debugging.enable_check_numerics()
        checked.schedule(read)
        until(lambda: os.path.exists(begun))
        debugging.disable_check_numerics()
        place = unchecked.schedule(os.getpid).fetch()
        Path(go).touch()
        with pytest.raises(NotFinite, match=r"what after_go returned is not finite in a dataset"):
            checked.join()
        assert checked.schedule(os.getpid).fetch() == place


def test_scheduled_functions_are_dumped(coordinator: Any, tmp_path: Path) -> None:
    with coordinator.strategy.scope():
        table = wb.Variable(np.zeros(3), name="table")

    def step(x: Any) -> Any:
        table.assign_add(x * 2)
        return np.exp(x)

    debugging.experimental.enable_dump_debug_info(tmp_path / "d", "FULL_TENSOR")
    results = [coordinator.schedule(step, args=(np.full(3, float(n)),)) for n in range(4)]
    assert coordinator.fetch(results)[0].tolist() == [1, 1, 1]
    debugging.experimental.disable_dump_debug_info()

    rows = read_dump(tmp_path / "d").table.to_pylist()
    assert sorted((row["step"], row["op"]) for row in rows) == sorted(
        (step, op) for step in range(4) for op in ("multiply", "assign_add", "exp")
    )
    assert {row["replica"] for row in rows} <= {0, 1}
    assert all("in step" in row["line"] for row in rows)


def test_a_dump_that_begins_again_is_written_when_it_ends_again(coordinator: Any, tmp_path: Path) -> None:
    exp = wb.function(np.exp)
    steps = []
    for _ in range(2):
        debugging.experimental.enable_dump_debug_info(tmp_path / "d")
        coordinator.schedule(exp, args=(np.ones(2),)).fetch()
        debugging.experimental.disable_dump_debug_info()
        steps.append(sorted(row["step"] for row in read_dump(tmp_path / "d").table.to_pylist()))

    assert steps == [[0], [0, 1]]


def test_a_dump_ends_when_the_functions_have_ended_that_were_scheduled_before(
    coordinator: Any, tmp_path: Path
) -> None:
    begun, go = str(tmp_path / "begun"), str(tmp_path / "go")

    def step(x: Any) -> Any:
        import os
        import time

        y = np.exp(x)
        os.close(os.open(begun, os.O_CREAT))
        while not os.path.exists(go):
            time.sleep(0.001)
        return np.log(y)

    def fail(x: Any) -> None:
        raise ValueError(str(np.exp(x)))

    debugging.experimental.enable_dump_debug_info(tmp_path / "d")
    for _ in range(6):
        coordinator.schedule(step, args=(np.ones(2),))
    coordinator.schedule(fail, args=(np.ones(2),))
    until(lambda: os.path.exists(begun))
    ending = threading.Thread(target=debugging.experimental.disable_dump_debug_info)
    ending.start()
    until(lambda: current_writer() is None)
    Path(go).touch()
    ending.join()

    rows = read_dump(tmp_path / "d").table.to_pylist()
    assert sorted(row["op"] for row in rows) == ["exp"] * 7 + ["log"] * 6
    with pytest.raises(ValueError, match=r"2\.718"):
        coordinator.join()


def test_a_dump_ends_although_a_function_does_not(
    coordinator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = str(tmp_path / "begun"), str(tmp_path / "go")

    def step(x: Any) -> None:
        import os
        import time

        np.exp(x)
        os.close(os.open(begun, os.O_CREAT))
        while not os.path.exists(go):
            time.sleep(0.001)
        np.log(x)

    debugging.experimental.enable_dump_debug_info(tmp_path / "d")
    coordinator.schedule(step, args=(np.ones(2),))
    until(lambda: os.path.exists(begun))
    coordinator.schedule(np.sqrt, args=(np.ones(2),)).fetch()
    monkeypatch.setattr(cluster_coordinator, "_SETTLE_SECONDS", 0.1)
    with pytest.warns(RuntimeWarning, match="ended before 1 function that .* coordinator.join") as told:
        debugging.experimental.disable_dump_debug_info()

    assert {one.filename for one in told} == {__file__}
    assert {row["op"] for row in read_dump(tmp_path / "d").table.to_pylist()} == {"exp", "sqrt"}
    Path(go).touch()
    coordinator.join()
    assert {row["op"] for row in read_dump(tmp_path / "d").table.to_pylist()} == {"exp", "sqrt", "log"}


def test_a_strategy_that_closes_before_the_dump_ends_writes_what_its_workers_keep(
    three: Any, tmp_path: Path
) -> None:
    strategy = distribute.ParameterServerStrategy(servers=1)
    coordinator = distribute.coordinator.ClusterCoordinator(strategy)
    debugging.experimental.enable_dump_debug_info(tmp_path / "d")
    coordinator.schedule(np.exp, args=(np.ones(2),)).fetch()
    strategy.close()
    debugging.experimental.disable_dump_debug_info()

    assert [row["op"] for row in read_dump(tmp_path / "d").table.to_pylist()] == ["exp"]


def _dump_of_a_strategy(root: Path, before_close: Callable[[], object] = lambda: None) -> None:
    """Dumps a function of a strategy that closes before its dump ends."""
    strategy = distribute.ParameterServerStrategy(servers=1)
    coordinator = distribute.coordinator.ClusterCoordinator(strategy)
    debugging.experimental.enable_dump_debug_info(root)
    coordinator.schedule(np.exp, args=(np.ones(2),)).fetch()
    before_close()
    strategy.close()


@pytest.mark.usefixtures("three")
def test_a_folder_that_was_removed_after_a_dump_holds_the_next_one_likewise(tmp_path: Path) -> None:
    for _ in range(3):
        _dump_of_a_strategy(tmp_path / "d")
        debugging.experimental.disable_dump_debug_info()
        assert [row["op"] for row in read_dump(tmp_path / "d").table.to_pylist()] == ["exp"]
        shutil.rmtree(tmp_path / "d")


@pytest.mark.usefixtures("three")
def test_a_strategy_that_closes_names_workers_that_cannot_write_and_the_next_dump_is_written(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with pytest.warns(RuntimeWarning, match=r"worker [01] on \S+ has not written .* into '.*/gone': .*/gone"):
        _dump_of_a_strategy(tmp_path / "gone", lambda: shutil.rmtree(tmp_path / "gone"))
    here = request.node.callspec.params["three"] == "threads"
    with pytest.raises(NotFoundError, match="/gone") if here else contextlib.nullcontext():
        debugging.experimental.disable_dump_debug_info()
    _dump_of_a_strategy(tmp_path / "d")
    debugging.experimental.disable_dump_debug_info()

    assert [row["op"] for row in read_dump(tmp_path / "d").table.to_pylist()] == ["exp"]


def test_a_scheduled_function_ends_the_dump_of_the_notebook_that_it_shares_a_process_with(
    tmp_path: Path,
) -> None:
    with wb.connect(replicas=2, processes=False, replace=True):
        strategy = distribute.ParameterServerStrategy(servers=1)
        coordinator = distribute.coordinator.ClusterCoordinator(strategy)

        def step(x: Any) -> None:
            np.exp(x)
            debugging.experimental.disable_dump_debug_info()
            np.log(x)

        debugging.experimental.enable_dump_debug_info(tmp_path / "d")
        coordinator.schedule(step, args=(np.ones(2),)).fetch()
        strategy.close()

    assert [row["op"] for row in read_dump(tmp_path / "d").table.to_pylist()] == ["exp", "log"]


def test_a_filter_of_dtypes_that_cannot_travel_is_refused_when_it_is_given(tmp_path: Path) -> None:
    lock = threading.Lock()

    with pytest.raises(CaptureError, match=r"tensor_dtypes cannot travel to workers: .*lock"):
        debugging.experimental.enable_dump_debug_info(tmp_path, tensor_dtypes=lambda dtype: lock is not None)
    assert current_writer() is None


def test_a_worker_that_does_not_answer_is_named_and_all_others_write(
    coordinator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def connect(address: ServiceAddress, *_: Any) -> Connection:
        asked.append(address.name)
        raise TimeoutError("timed out")

    debugging.experimental.enable_dump_debug_info(tmp_path / "d")
    coordinator.schedule(np.exp, args=(np.ones(2),)).fetch()
    list(Dataset.from_tensor_slices(np.ones((2, 3))).map(np.sqrt))
    monkeypatch.setattr(lane, "Connection", connect)
    with pytest.warns(RuntimeWarning, match=r"worker [01] on \S+ has not written .*: timed out") as told:
        debugging.experimental.disable_dump_debug_info()

    assert {one.filename for one in told} == {__file__}
    assert sorted(asked) == ["worker:0", "worker:1"]
    assert "sqrt" in {row["op"] for row in read_dump(tmp_path / "d").table.to_pylist()}


def test_no_worker_waits_for_another_to_be_reached(
    coordinator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2)

    def connect(*arguments: Any) -> Connection:
        together.wait(60)
        return Connection(*arguments)

    debugging.experimental.enable_dump_debug_info(tmp_path / "d")
    coordinator.schedule(np.exp, args=(np.ones(2),)).fetch()
    monkeypatch.setattr(lane, "Connection", connect)
    debugging.experimental.disable_dump_debug_info()

    assert [row["op"] for row in read_dump(tmp_path / "d").table.to_pylist()] == ["exp"]


def test_all_workers_are_asked_to_write_also_where_warnings_are_errors(
    coordinator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Connection):
        def __init__(self, address: ServiceAddress, tls: Any, timeout_seconds: float) -> None:
            super().__init__(address, tls, timeout_seconds)
            opened.append((address.name, timeout_seconds))

        def send(self, *_: Any) -> None:
            raise ConnectionError("cut off")

        def close(self) -> None:
            super().close()
            closed.append(self)

    opened: list[tuple[str, float]] = []
    closed: list[Connection] = []
    debugging.experimental.enable_dump_debug_info(tmp_path / "d")
    coordinator.schedule(np.exp, args=(np.ones(2),)).fetch()
    monkeypatch.setattr(lane, "Connection", Broken)
    monkeypatch.setattr(cluster_coordinator, "_WRITE_SECONDS", 5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match=r"worker 0 .*: cut off"):
            debugging.experimental.disable_dump_debug_info()

    assert sorted(name for name, _ in opened) == ["worker:0", "worker:1"]
    assert all(seconds <= 5.0 for _, seconds in opened)
    assert len(closed) == 2


@pytest.fixture(scope="module", params=["threads", "processes", "processes without an input process"])
def replicas(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    """Two replicas, and how they read."""
    options = distribute.InputOptions(input_process=False) if "without" in request.param else None
    with wb.connect(replicas=2, processes=request.param != "threads", replace=True):
        yield wb.MirroredStrategy(), options


def _first_epoch(replicas: tuple[Any, Any], dataset: Dataset) -> int:
    strategy, options = replicas
    return sum(1 for _ in strategy.distribute_dataset(dataset, options))


@pytest.mark.usefixtures("enabled")
def test_functions_of_a_distributed_dataset_are_checked(replicas: tuple[Any, Any]) -> None:
    with pytest.raises(
        NotFinite, match=r"`np.log\(.*\)` makes a NaN \(invalid value\) in a dataset, at test_observed"
    ):
        _first_epoch(replicas, _logs(8).batch(2))


@pytest.mark.usefixtures("enabled")
def test_elements_of_a_distributed_dataset_are_checked(replicas: tuple[Any, Any]) -> None:
    values = Dataset.from_tensor_slices(np.array([1.0, 1.0, 1.0, np.nan]))

    with pytest.raises(
        NotFinite,
        match=r"the element for replica 1 in step 1 is not finite in a dataset: 1 NaN and 0 infinite of 1 ",
    ):
        _first_epoch(replicas, values.batch(2))


def test_nothing_is_checked_any_more_once_that_is_disabled(replicas: tuple[Any, Any]) -> None:
    strategy, _ = replicas
    debugging.enable_check_numerics()
    try:
        assert _first_epoch(replicas, Dataset.range(8).batch(2)) == 4
    finally:
        debugging.disable_check_numerics()

    def sums() -> float:  # from a dataset that the function itself reads
        return float(np.nansum(list(_logs(2))))

    assert strategy.local_results(strategy.run(sums))[0] == 0
    assert _first_epoch(replicas, _logs(8).batch(2)) == 4
    assert not numerics.is_enabled()
