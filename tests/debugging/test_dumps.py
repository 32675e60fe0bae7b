"""Dumps: what operations gave, with line, replica and step; and reading them."""

from __future__ import annotations

import json
import linecache
import os
import shutil
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import LocalCluster

import workbench as wb
from workbench.debugging.dump.dump_file import DumpFile, close_file, dump_file
from workbench.debugging.dump.facts import facts
from workbench.debugging.dump.options import DumpOptions
from workbench.debugging.dump.recording import recording
from workbench.debugging.dump.session import current_writer
from workbench.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFinite,
    NotFoundError,
)
from workbench.ui.models.messages import MODELS
from workbench.ui.models.model_check import misfits

enable = wb.debugging.experimental.enable_dump_debug_info
disable = wb.debugging.experimental.disable_dump_debug_info


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    yield
    wb.debugging.experimental.disable_dump_debug_info()


@pytest.fixture(scope="module", params=["threads", "processes"])
def strategy(request: pytest.FixtureRequest) -> Iterator[wb.MirroredStrategy]:
    with wb.connect(replicas=2, processes=request.param == "processes", replace=True):
        yield wb.MirroredStrategy(["CPU:0", "CPU:1"])


def _step(x: Any) -> Any:
    scaled = x * 2
    joined = np.concatenate([scaled, scaled])
    total = joined.sum()
    mean = wb.distribute.get_replica_context().all_reduce("MEAN", scaled)  # type: ignore[union-attr]
    return np.exp(mean), total


def _values() -> wb.distribute.PerReplica:
    return wb.distribute.PerReplica([np.array([1, 2], np.float32), np.array([3, 4], np.float32)])


def test_operations_come_with_line_replica_and_step(strategy: wb.MirroredStrategy, tmp_path: Path) -> None:
    writer = enable(tmp_path / "d", "FULL_TENSOR")
    result, total = strategy.run(_step, args=(_values(),))
    assert [type(part) for part in strategy.local_results(result)] == [np.ndarray] * 2
    assert float(strategy.local_results(total)[1]) == 28.0
    writer.FlushNonExecutionFiles()
    writer.FlushExecutionFiles()

    dump = wb.open_dump(tmp_path / "d")
    ops = [row["op"] for row in dump.select(replica=1)]
    assert ops == ["multiply", "concatenate", "add.reduce", "all_reduce", "exp"]
    (exp,) = dump.select(replica=1, op="exp")
    assert exp["line"].startswith("test_dumps.py:")
    assert exp["line"].endswith(" in _step")
    array = dump.array(exp)
    assert array is not None
    np.testing.assert_allclose(array, np.exp(np.array([4, 6], np.float32)))
    assert dump.steps == (exp["step"],)
    assert any("def _step" in text for text in dump.sources.values())


def test_assignments_name_their_variable_and_functions_are_dumped_once_it_is_enabled(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    with strategy.scope():
        w = wb.Variable(np.zeros(2, np.float32), name="w")

    @wb.function
    def step(x: Any) -> None:
        w.assign_add(x * 3)

    strategy.run(step, args=(_values(),))
    enable(tmp_path / "d", "SHAPE")
    strategy.run(step, args=(_values(),))
    disable()
    strategy.run(step, args=(_values(),))
    strategy.local_results(w)

    dump = wb.open_dump(tmp_path / "d")
    (row,) = dump.select(op="assign_add", replica=0)
    assert (row["name"], row["dtype"], row["shape"]) == ("w:0", "float32", [2])
    assert len(dump.steps) == 1
    assert type(np.asarray(w)) is np.ndarray


def test_threads_of_one_process_write_its_sources_in_turn(tmp_path: Path) -> None:
    file = DumpFile(DumpOptions(str(tmp_path / "d"), "NO_TENSOR", 10, None, None))
    file.add({}, (__file__,))
    with ThreadPoolExecutor(8) as pool:
        for written in [pool.submit(file.flush_sources) for _ in range(200)]:
            written.result()
    (sources,) = (tmp_path / "d").iterdir()
    assert list(json.loads(sources.read_text())) == [__file__]


def test_what_a_function_records_after_its_dump_has_ended_is_written_when_it_ends(tmp_path: Path) -> None:
    options = DumpOptions(str(tmp_path / "d"), "NO_TENSOR", 10, None, None)
    enable(options.root)
    with recording(options, host="here", replica=0, step=0) as made:
        made.add("exp", [np.ones(1)])
        disable()
        made.add("log", [np.ones(1)])

    assert [row["op"] for row in wb.open_dump(tmp_path / "d").select()] == ["exp", "log"]


def test_an_error_of_a_function_stays_where_the_end_of_its_dump_cannot_be_written(tmp_path: Path) -> None:
    options = DumpOptions(str(tmp_path / "d"), "NO_TENSOR", 10, None, None)
    enable(options.root)

    def run() -> None:
        with recording(options, host="here", replica=0, step=0) as made:
            disable()
            made.add("log", [np.ones(1)])
            shutil.rmtree(tmp_path / "d")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        run()
    assert "what was left of the dump was not written: " in caught.value.__notes__[0]


def test_a_dump_into_the_same_folder_keeps_the_sources_of_the_one_before(tmp_path: Path) -> None:
    options = DumpOptions(str(tmp_path / "d"), "NO_TENSOR", 10, None, None)
    for name in (__file__, np.__file__):
        file = DumpFile(options)
        file.add({}, (name,))
        file.close()

    stored = [json.loads(path.read_text()) for path in (tmp_path / "d").glob("sources-*")]
    assert sorted(map(list, stored)) == sorted([[__file__], [np.__file__]])


def test_the_newest_text_of_a_source_counts_also_in_a_copy_of_a_dump(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    writer = enable(tmp_path / "d")
    texts = [f"version {number}" for number in range(12)]
    for text in texts:
        monkeypatch.setattr(linecache, "getlines", lambda name, text=text: [text])
        file = DumpFile(writer.options)
        file.add({}, ("cell.py",))
        file.flush_sources()
    disable()
    paths = sorted((tmp_path / "d").glob("sources-*"))
    assert [json.loads(path.read_text())["cell.py"] for path in paths] == texts
    for age, path in enumerate(paths):
        os.utime(path, (1000 - age, 1000 - age))

    assert wb.open_dump(tmp_path / "d").sources == {"cell.py": texts[-1]}


def test_a_dump_begins_although_the_one_before_cannot_be_written(tmp_path: Path) -> None:
    first = enable(tmp_path / "gone")
    with recording(first.options, host="here", replica=0, step=0) as made:
        made.add("exp", [np.ones(1)])
    shutil.rmtree(tmp_path / "gone")
    with pytest.warns(
        RuntimeWarning, match=r"/gone' has ended, and what was left of it was not written: "
    ) as told:
        second = enable(tmp_path / "d")
    assert {one.filename for one in told} == {__file__}

    assert current_writer() is second
    with recording(second.options, host="here", replica=0, step=0) as made:
        made.add("log", [np.ones(1)])
    disable()
    assert [row["op"] for row in wb.open_dump(tmp_path / "d").select()] == ["log"]


def test_a_dump_goes_on_where_the_next_one_cannot_begin(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    first = enable(tmp_path / "d")
    with pytest.raises(FailedPreconditionError, match="cannot be written"):
        enable(tmp_path / "file" / "below")
    assert current_writer() is first
    disable()
    assert current_writer() is None


def test_a_process_records_into_a_new_dump_although_the_one_before_cannot_be_written(tmp_path: Path) -> None:
    first, second = (DumpOptions(str(tmp_path / "d"), "NO_TENSOR", size, None, None) for size in (10, 20))
    try:
        dump_file(first).add({"step": "which no table of steps takes"}, ())
        with pytest.warns(RuntimeWarning, match=r"the dump before was not written into '.*/d': Arrow"):
            found = dump_file(second)
        assert (found.options, found.ended) == (second, False)
        assert dump_file(second) is found
    finally:
        close_file(first.root)


def test_what_one_cannot_write_is_told_and_all_others_write(tmp_path: Path) -> None:
    class Full:
        def flush_dumps(self, root: str, **_: bool) -> None:
            raise OSError(f"no space in {root}")

    writer = enable(tmp_path / "d")
    full = Full(), Full()
    for each in full:
        writer.runs_on(each)
    with recording(writer.options, host="here", replica=0, step=0) as made:
        made.add("exp", [np.ones(1)])
    with pytest.raises(OSError, match="no space"):
        disable()

    assert len(wb.open_dump(tmp_path / "d")) == 1


def test_each_process_keeps_the_newest_until_they_are_flushed(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    writer = enable(tmp_path / "d", circular_buffer_size=3)
    for _ in range(4):
        strategy.run(_step, args=(_values(),))
    assert len(wb.open_dump(tmp_path / "d")) == 0
    writer.FlushExecutionFiles()

    processes = 1 if len({device.worker for device in strategy.devices}) == 1 else 2
    dump = wb.open_dump(tmp_path / "d")
    assert len(dump) == 3 * processes
    assert [row["op"] for row in dump.select()][-1] == "exp"


@pytest.mark.parametrize("processes", [False, True])
def test_a_cluster_that_closes_before_the_dump_ends_writes_its_newest_operations(
    processes: bool, tmp_path: Path
) -> None:
    enable(tmp_path / "d")
    with wb.connect(replicas=2, processes=processes, replace=True):
        strategy = wb.MirroredStrategy()
        strategy.local_results(strategy.run(_step, args=(_values(),)))
    disable()

    dump = wb.open_dump(tmp_path / "d")
    assert [len(dump.select(replica=replica)) for replica in range(2)] == [5, 5]
    assert any("def _step" in text for text in dump.sources.values())


def test_workers_that_outlive_their_driver_write_their_newest_operations(tmp_path: Path) -> None:
    enable(tmp_path / "d")
    with LocalCluster(n_workers=1, processes=True, dashboard_address="127.0.0.1:0") as dask_cluster:
        with wb.connect(dask_cluster, replace=True) as cluster:
            strategy = wb.MirroredStrategy()
            strategy.local_results(strategy.run(lambda x: x * 2, args=(np.ones(2),)))
            cluster.closing.pop()  # a killed driver requests nothing
        deadline = time.monotonic() + 60
        while not len(wb.open_dump(tmp_path / "d")) and time.monotonic() < deadline:
            pass
    assert [row["op"] for row in wb.open_dump(tmp_path / "d").select()] == ["multiply"]


def test_what_cannot_be_written_at_the_end_is_told(tmp_path: Path) -> None:
    enable(tmp_path / "d")
    cluster = wb.connect(replicas=1, processes=True, replace=True)
    try:
        strategy = wb.MirroredStrategy()
        strategy.local_results(strategy.run(lambda x: x * 2, args=(np.ones(2),)))
        shutil.rmtree(tmp_path / "d")
        with pytest.warns(RuntimeWarning, match=r"has not written all that it kept.*/d': FileNotFoundError"):
            cluster.close()
    finally:
        cluster.close()
        (tmp_path / "d").mkdir()


def test_warnings_of_numpy_name_the_line_of_the_operation(tmp_path: Path) -> None:
    def bad(x: Any) -> Any:
        return np.log(x) + np.dot(x, 1e300), np.nanmean(x[:0]), np.var(x[:0])

    def warned() -> list[tuple[str, str, int]]:
        rows = wb.data.Dataset.from_tensors(np.array([0.0, 1e300]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            list(rows.map(bad))
        return [(str(each.message), each.filename, each.lineno) for each in caught]

    ordinary = warned()
    assert any(path == __file__ for _, path, _ in ordinary)
    enable(tmp_path / "d")
    assert warned() == ordinary


def test_without_a_buffer_each_operation_is_written_at_once(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    enable(tmp_path / "d", circular_buffer_size=0)
    strategy.run(_step, args=(_values(),))

    assert len(wb.open_dump(tmp_path / "d")) == 10


def test_filters_hold_together(strategy: wb.MirroredStrategy, tmp_path: Path) -> None:
    enable(tmp_path / "d", op_regex="^(multiply|exp)$", tensor_dtypes=lambda dtype: dtype == np.float32)
    strategy.run(_step, args=(_values(),))
    strategy.run(lambda x: x * 2, args=(np.arange(3),))
    disable()

    assert {row["op"] for row in wb.open_dump(tmp_path / "d").select()} == {"multiply", "exp"}
    enable(tmp_path / "e", tensor_dtypes=["int64"])
    strategy.run(lambda x: x * 2, args=(np.arange(3),))
    strategy.run(_step, args=(_values(),))
    disable()
    assert {row["op"] for row in wb.open_dump(tmp_path / "e").select()} == {"multiply"}
    enable(tmp_path / "f", "SHAPE", tensor_dtypes=["bfloat16", "float"])
    for dtype in ("bfloat16", "float32", "float64"):
        strategy.run(lambda x: x * 2, args=(np.zeros(3, dtype),))
    disable()
    assert {row["dtype"] for row in wb.open_dump(tmp_path / "f").select()} == {"bfloat16", "float32"}


def test_functions_of_a_dataset_are_dumped(tmp_path: Path) -> None:
    enable(tmp_path / "d", "FULL_HEALTH")
    rows = wb.data.Dataset.from_tensor_slices(np.array([[1.0, 0.0], [2.0, np.inf]]))
    with np.errstate(invalid="ignore"):
        list(rows.map(lambda row: row - row))
    disable()

    dump = wb.open_dump(tmp_path / "d")
    first, second = dump.select(op="subtract")
    assert (first["zeros"], first["bad"], first["replica"]) == (2, False, -1)
    assert (second["zeros"], second["nans"], second["bad"]) == (1, 1, True)
    assert "first NaN or infinity: subtract at test_dumps.py:" in repr(dump)


_MIXED = np.array([-1.0, 0.0, 3.0, np.nan, np.inf, -np.inf], np.float32)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("NO_TENSOR", {}),
        ("CURT_HEALTH", {"dtype": "float32", "bad": True}),
        (
            "CONCISE_HEALTH",
            {
                "dtype": "float32",
                "size": 6,
                "bad": True,
                "negative_infinities": 1,
                "positive_infinities": 1,
                "nans": 1,
            },
        ),
        ("SHAPE", {"dtype": "float32", "shape": [6], "size": 6}),
    ],
)
def test_a_mode_says_what_it_says(mode: str, expected: dict[str, Any]) -> None:
    assert facts(_MIXED, mode) == expected


def test_full_modes_count_and_measure_the_finite_elements() -> None:
    health = facts(_MIXED, "FULL_HEALTH")
    assert (health["negatives"], health["zeros"], health["positives"]) == (1, 1, 1)
    numerics = facts(_MIXED, "FULL_NUMERICS")
    assert (numerics["min"], numerics["max"]) == (-1.0, 3.0)
    assert numerics["mean"] == pytest.approx(2 / 3)
    assert numerics["variance"] == pytest.approx(np.var([-1.0, 0.0, 3.0]))
    assert facts(np.arange(3), "FULL_HEALTH") == {}
    assert facts(np.arange(3), "FULL_NUMERICS")["max"] == 2.0
    assert facts(np.array([b"a"], object), "FULL_TENSOR") == {"dtype": "object", "shape": [1], "size": 1}


def test_the_same_dump_again_is_the_same_and_another_folder_ends_it(tmp_path: Path) -> None:
    writer = enable(tmp_path / "d", "shape")
    assert enable(tmp_path / "d", "SHAPE") is writer
    with pytest.raises(ValueError, match="is already running with"):
        enable(tmp_path / "d", "SHAPE", op_regex="x")
    other = enable(tmp_path / "e")
    assert other is not writer
    with pytest.raises(ValueError, match="not a regular expression"):
        enable(tmp_path / "f", op_regex="(")
    with pytest.raises(TypeError, match="op_regex must be a text, got 5"):
        enable(tmp_path / "f", op_regex=5)
    with pytest.raises(InvalidArgumentError, match="has a zero byte"):
        enable("a\0b")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"write \['float32'\]"):
        enable(tmp_path / "f", tensor_dtypes="float32")
    for none in (3, {}, {"float32": True}):
        with pytest.raises(ValueError, match="tensor_dtypes must be a list of dtypes or a function, got"):
            enable(tmp_path / "f", tensor_dtypes=none)
    for wrong, said in (
        (None, "a dtype is missing"),
        ("nonsense", "nonsense"),
        (dict, "dict is not a dtype"),
    ):
        with pytest.raises(TypeError, match=said):
            enable(tmp_path / "f", tensor_dtypes=[wrong])
    with pytest.raises(TypeError, match="circular_buffer_size must be a whole number, got str '9'"):
        enable(tmp_path / "f", circular_buffer_size="9")
    for nowhere in (None, ""):
        with pytest.raises(ValueError, match="dump_root is the path of a folder, got"):
            enable(nowhere)


def test_a_dump_that_begins_again_is_written_when_it_ends_again(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    step = wb.function(lambda x: x * 2)
    counts = []
    for _ in range(2):
        enable(tmp_path / "d")
        strategy.local_results(strategy.run(step, args=(np.ones(2),)))
        disable()
        counts.append(len(wb.open_dump(tmp_path / "d")))

    assert counts == [2, 4]


def test_a_folder_that_cannot_be_made_is_named_and_no_dump_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")

    with pytest.raises(
        FailedPreconditionError, match=rf"the folder of the dump '{file}' cannot be written: .*exists"
    ):
        enable(file)
    assert current_writer() is None


def test_in_place_operations_change_the_array_and_leave_the_notebooks_alone(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    def step(x: Any) -> Any:
        y = x + 1
        y += x
        y[0] = 9
        return y

    enable(tmp_path / "d", "FULL_TENSOR")
    found = strategy.local_results(strategy.run(step, args=(np.ones(2),)))
    disable()
    assert [part.tolist() for part in found] == [[9.0, 3.0]] * 2
    assert [row["op"] for row in wb.open_dump(tmp_path / "d").select(replica=0)] == ["add", "add"]


def test_an_error_of_the_function_is_the_users_and_what_came_before_is_kept(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    def step(x: Any) -> Any:
        y = x * 2
        raise KeyError("mine")
        return y

    enable(tmp_path / "d")
    with pytest.raises(KeyError, match="mine"):
        strategy.run(step, args=(np.ones(2),))
    disable()
    assert [row["op"] for row in wb.open_dump(tmp_path / "d").select(replica=0)] == ["multiply"]


def test_a_recorded_operation_that_makes_a_nan_is_named_with_its_line(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    def step(x: Any) -> Any:
        return np.log(x - 2)

    enable(tmp_path / "d")
    wb.debugging.enable_check_numerics()
    try:
        with pytest.raises(NotFinite, match=r"`np\.log\(x - 2\)` makes a NaN .* test_dumps\.py:\d+ in step"):
            strategy.run(step, args=(np.ones(2),))
    finally:
        wb.debugging.disable_check_numerics()
        disable()


@pytest.fixture
def written(tmp_path: Path) -> Path:
    enable(tmp_path / "d", "FULL_TENSOR", circular_buffer_size=0)
    list(wb.data.Dataset.from_tensor_slices(np.ones((4, 3))).map(lambda row: np.sqrt(row) + 1))
    disable()
    return tmp_path / "d"


def test_a_dump_that_was_cut_off_is_read_up_to_there(written: Path) -> None:
    (path,) = written.glob("executions-*.tfrecord")
    whole = path.read_bytes()
    assert len(wb.open_dump(written)) == 8
    path.write_bytes(whole[: len(whole) * 2 // 3])

    dump = wb.open_dump(written)
    assert 0 < len(dump) < 8
    assert "was cut off or damaged after" in repr(dump)


def test_damaged_files_are_refused_or_read_and_never_crash(written: Path) -> None:
    (path,) = written.glob("executions-*.tfrecord")
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 100)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        dump = wb.open_dump(written)
        for row in dump.select():
            try:
                dump.array(row)
            except DataLossError:
                pass
    with pytest.raises(DataLossError, match="cannot be read from the dump") as caught:
        dump.array(row | {"shape": [1000]})
    assert caught.value.file == str(written)
    assert len(wb.open_dump(written)) <= 8


def test_what_is_no_dump_is_refused(written: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="dump_root"):
        wb.open_dump(tmp_path / "nothing")
    (written / "dump.json").write_text(json.dumps({"format": 2, "mode": "SHAPE"}))
    with pytest.raises(InvalidArgumentError, match="format 2"):
        wb.open_dump(written)
    (written / "dump.json").write_text("[" * 100_000)
    with pytest.raises(InvalidArgumentError, match="no dump"):
        wb.open_dump(written)


def test_a_dump_prints_as_a_table_and_texts_are_no_html(written: Path) -> None:
    dump = wb.open_dump(written)
    text = repr(dump)
    assert text.splitlines()[0] == "Dump d, FULL_TENSOR: 8 operations"
    assert "sqrt" in text
    assert "float64[3]" in text
    assert len(dump.to_pandas()) == dump.to_arrow().num_rows == 8
    renamed = written.rename(written.with_name("<b>"))
    assert "<b>" not in wb.open_dump(renamed)._repr_html_()


def test_a_notebook_shows_the_values_of_a_step_and_a_slider_chooses_it(
    strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    enable(tmp_path / "d", "FULL_TENSOR")
    for factor in (1, 2, 3):
        strategy.run(lambda x, factor: x * factor, args=(_values(), factor))
    disable()

    source = wb.open_dump(tmp_path / "d").source()
    model = source.model()
    assert misfits(json.loads(json.dumps(model)), MODELS[source.view]) == []
    assert model["steps"]["shown"] == 2
    assert len(model["steps"]["steps"]) == 3
    (value,) = model["values"]
    assert value["kind"] == "multiply"
    assert [each["summary"]["max"] for each in value["replicas"]] == [6.0, 12.0]

    answer = source.answer({"kind": "step", "shown": 0})
    assert answer is not None
    assert [each["summary"]["max"] for each in answer["model"]["values"][0]["replicas"]] == [2.0, 4.0]
    asked = {
        "value": 0,
        "replica": 1,
        "difference": False,
        "axes": [0, -1],
        "index": [0],
        "extent": [None, None],
    }
    elements = source.answer({"kind": "elements", **asked})
    assert elements is not None
    assert np.ravel(elements["model"]["elements"]["cells"]).tolist() == [3.0, 4.0]
    assert source.answer({"kind": "again"}) is None
    for shown in (3, -1, "1", None):
        with pytest.raises(InvalidArgumentError, match="no step number"):
            source.answer({"kind": "step", "shown": shown})


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("NO_TENSOR", "an array"),
        ("CURT_HEALTH", "float64, NaN or infinity"),
        ("CONCISE_HEALTH", "float64, 1 NaN, 0 infinite"),
        ("SHAPE", "float64[2]"),
    ],
)
def test_other_modes_tell_in_words_what_they_have(tmp_path: Path, mode: str, told: str) -> None:
    enable(tmp_path / "d", mode)
    list(wb.data.Dataset.from_tensors(np.array([np.nan, 1.0])).map(lambda row: row + 1))
    disable()

    dump = wb.open_dump(tmp_path / "d")
    assert dump.source().model()["values"][0]["replicas"][0]["summary"] == told
    assert "text/html" in dump._repr_mimebundle_()


def test_full_numerics_fill_the_figures(tmp_path: Path) -> None:
    enable(tmp_path / "d", "FULL_NUMERICS")
    list(wb.data.Dataset.from_tensors(np.array([3.0, 4.0, np.nan])).map(lambda row: row + 0))
    disable()

    summary = wb.open_dump(tmp_path / "d").source().model()["values"][0]["replicas"][0]["summary"]
    assert (summary["mean"], summary["std"], summary["nan"]) == (3.5, 0.5, 1)
    assert summary["l2"] == pytest.approx(5.0)


def test_a_table_with_all_figures_names_the_replica(tmp_path: Path, strategy: wb.MirroredStrategy) -> None:
    enable(tmp_path / "d", "FULL_NUMERICS")
    strategy.run(lambda row: row * 2 - 1, args=(np.ones(3),))
    disable()

    heading = repr(wb.open_dump(tmp_path / "d")).splitlines()[1].split()
    assert {"step", "replica", "op", "bad", "min", "max", "line"} <= set(heading)


def test_a_dump_without_operations_is_shown_as_such(tmp_path: Path) -> None:
    enable(tmp_path / "d")
    disable()

    dump = wb.open_dump(tmp_path / "d")
    assert dump.source().model()["values"] == []
    assert "0 operations" in repr(dump)
