"""`wb.record`, `wb.open_run`, `wb.runs` and `wb.report`: what was seen is seen again, without a cluster."""

from __future__ import annotations

import datetime
import gc
import html.parser
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import workbench as wb
from tests.telemetry.simulation import Replicas, steps
from workbench import allowance
from workbench.errors import DataCorruption, InvalidArgumentError, NotFoundError
from workbench.telemetry.clocks import Anchor
from workbench.telemetry.formatting import shorten
from workbench.telemetry.runs.recorded_run import open_run
from workbench.telemetry.runs.recorder import Recorder
from workbench.telemetry.runs.run_metadata import Facts
from workbench.telemetry.runs.saved_models import LOOKS_KEY, Looks
from workbench.telemetry.runs.transfer_times import Times
from workbench.ui.models.messages import MODELS
from workbench.ui.models.model_check import misfits
from workbench.ui.render.text_table import WIDTH
from workbench.ui.runs.runs_model import compared_times
from workbench.ui.widgets import shown
from workbench.ui.widgets.built import is_built
from workbench.ui.widgets.bundle import MIME

PAYLOAD = "</script><script>hit()</script><!--<img src=x onerror=hit()>"
built = pytest.mark.skipif(not is_built(), reason="the views are not built: python extension/hatch_build.py")


def reduce_all(size: int = 8) -> np.ndarray:
    wb.distribute.get_replica_context().all_reduce("sum", np.ones(size))
    return np.full(3, np.nan)


@pytest.fixture
def recorded(cluster: wb.Cluster, strategy: wb.MirroredStrategy, tmp_path: Path) -> Path:
    """A folder with two runs, in which something was looked at."""
    for name, count in (("first", 10), ("second", 12)):
        with wb.record(tmp_path / "runs" / f"{name}.parquet"):
            for _ in range(count):
                losses = strategy.run(reduce_all)
            wb.inspect(losses, name="losses")
            wb.explain_sharding(wb.data.Dataset.range(10).batch(4), 2)
            wb.explain_sharding(losses)
    return tmp_path / "runs"


def test_every_view_is_there_again_without_a_cluster(recorded: Path) -> None:
    model = wb.open_run(recorded / "first.parquet").model()

    # A float may be unknown where the model declares a number; nothing else may differ.
    assert misfits(json.loads(json.dumps(model)), MODELS["replay"]) == []
    assert model["notes"] == []
    assert model["topology"]["status"] == model["devices"]["status"] == "replay"
    (host,) = model["topology"]["hosts"]
    assert sum(len(device["replicas"]) > 0 for w in host["workers"] for device in w["devices"]) == 2
    assert model["values"]["values"][0]["name"] == "losses"
    assert model["values"]["values"][0]["replicas"][0]["summary"]["nan"] == 3
    assert model["dataset_sharding"]["elements"] == 10
    assert [part["replica"] for part in model["array_sharding"]["parts"]] == [0, 1]
    assert model["collectives"]["snapshot"]["table"]
    (told,) = open_run(recorded / "first.parquet").looks.told.values()
    assert told.cores == allowance.cores()


def test_only_who_records_keeps_what_is_shown(cluster: wb.Cluster, tmp_path: Path) -> None:
    before = shown.listeners.copy()  # panes that may want to know
    with wb.record(tmp_path / "run.parquet"):
        assert len(shown.listeners) == len(before) + 1
    assert shown.listeners == before


def test_a_recording_that_nobody_keeps_goes_on(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    wb.record(tmp_path / "run.parquet")
    gc.collect()
    assert _recorders(cluster) == 1
    cluster.closing.pop()()
    assert _recorders(cluster) == 0
    assert (tmp_path / "run.parquet").exists()


def _recorders(cluster: wb.Cluster) -> int:
    """The number of listening recordings. A server may listen, too, from the moment it finds the cluster."""
    owners = [getattr(listener, "__self__", None) for listener in cluster.telemetry_listeners]
    return sum(isinstance(owner, Recorder) for owner in owners)


class _Changing(list[Any]):
    """A list that another thread appends to after each complete iteration."""

    added = 0

    def __iter__(self) -> Iterator[Any]:
        yield from self.copy()
        self.append(print)
        self.added += 1


def test_a_recording_that_ends_removes_its_own_end_alone(cluster: wb.Cluster, tmp_path: Path) -> None:
    before = cluster.closing
    with wb.record(tmp_path / "run.parquet") as recording:
        cluster.closing = closing = _Changing(before)
    recording.close()  # again
    assert cluster.closing is closing
    assert closing.count(print) == closing.added
    assert len(closing) == len(before) - 1 + closing.added
    cluster.closing = before
    before.remove(recording._end_with_cluster)


def test_what_was_before_a_recording_is_not_in_it(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    earlier: list[bytes] = []
    cluster.telemetry_listeners.append(earlier.append)
    strategy.run(reduce_all)
    with wb.record(tmp_path / "run.parquet"):
        assert earlier
        for batch in earlier.copy():
            cluster._take_telemetry(batch)  # as if Dask delivered it later than the requested flush
        strategy.run(reduce_all)
    cluster.telemetry_listeners.remove(earlier.append)

    steps = wb.open_run(tmp_path / "run.parquet").to_arrow()["step"].to_pylist()
    assert len(steps) == 2
    assert steps[0] == steps[1]


def test_a_run_is_listed_opened_and_compared_by_name_or_place(recorded: Path) -> None:
    runs = wb.runs(recorded)

    assert [run.name for run in runs] == ["second", "first"]
    assert runs[0].path == runs["second"].path == recorded / "second.parquet"
    assert repr(runs).splitlines()[0] == shorten(f"2 recorded runs in {recorded}", WIDTH)
    assert max(map(len, repr(runs).splitlines())) <= WIDTH
    comparison = runs.compare("first", 0)
    assert comparison.model.compared == ("first", "second")
    text = repr(comparison)
    assert "second (') compared with first" in text
    assert "all_reduce" in text
    assert max(map(len, text.splitlines())) <= WIDTH
    with pytest.raises(NotFoundError, match=r"no recorded run 'third' in .*there are: second, first"):
        runs["third"]
    with pytest.raises(InvalidArgumentError, match=r"wb\.open_run"):
        wb.runs(recorded / "first.parquet")


def test_a_folder_without_runs_says_how_to_make_one(tmp_path: Path) -> None:
    assert f"wb.record({str(tmp_path / 'first.parquet')!r})" in repr(wb.runs(tmp_path))
    assert len(wb.runs(tmp_path / "nothing")) == 0


def test_many_runs_are_listed_newest_first_and_the_rest_is_counted(
    recorded: Path, tmp_path: Path, safe_text
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(40):  # all within one second
        path = folder / f"run{number}.parquet"
        path.write_bytes((recorded / "first.parquet").read_bytes())
        os.utime(path, ns=(0, 1_700_000_000_000_000_000 + (number * 7) % 40))

    runs = wb.runs(folder)

    assert [run.name for run in runs][:3] == ["run17", "run34", "run11"]
    assert repr(runs).splitlines()[-1] == "… 8 older ones not shown"
    assert "… 8 older ones not shown" in safe_text(runs._repr_html_()).text


def test_a_damaged_run_is_listed_with_its_problem(recorded: Path) -> None:
    (recorded / "bad.parquet").write_bytes(b"nothing")

    runs = wb.runs(recorded)

    assert "✖" in repr(runs)
    assert "bad.parquet" in next(run.problem for run in runs if run.name == "bad")
    with pytest.raises(DataCorruption, match=r"bad\.parquet"):
        runs.compare("first", "bad")


def test_a_view_compares_only_runs_of_its_folder(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.parquet").write_bytes((recorded / "first.parquet").read_bytes())
    source = wb.runs(recorded)._source()

    both = {"first": str(recorded / "first.parquet"), "second": str(recorded / "second.parquet")}
    message = source.answer({"kind": "compare_runs", **both})
    assert message is not None
    assert message["model"]["rows"]
    with pytest.raises(NotFoundError):
        source.answer({"kind": "compare_runs", **both, "second": str(tmp_path / "secret.parquet")})
    with pytest.raises(InvalidArgumentError, match=r"wb\.open_run\(.*first\.parquet"):
        source.answer({"kind": "open_run", "path": both["first"]})


def test_some_steps_are_shown_by_themselves(recorded: Path) -> None:
    whole = wb.open_run(recorded / "first.parquet")
    last = whole.model()["last_step"]

    some = wb.open_run(recorded / "first.parquet", steps=range(last - 2, last + 1))

    assert sum(row.samples for row in some.rows) == 3
    assert set(some.to_arrow()["step"].to_pylist()) == {last - 2, last - 1, last}
    assert f"steps {last - 2} to {last}" in repr(some)
    model = whole._answer({"kind": "show_steps", "first": last, "last": last})
    assert model is not None
    assert sum(row["samples"] for row in model["collectives"]["snapshot"]["table"]) == 1
    with pytest.raises(InvalidArgumentError, match="such as range"):
        wb.open_run(recorded / "first.parquet", steps=range(9, 3, -1))


# -- the content of a file is not trusted


def forged(path: Path, change: Callable[[dict[str, str]], None]) -> Path:
    """A recorded run whose views were written by somebody else."""
    found = pq.ParquetFile(path).metadata.metadata
    models = dict(Looks.decode(found[LOOKS_KEY]).models)
    change(models)
    table = pq.read_table(path).replace_schema_metadata(dict(found) | {LOOKS_KEY: Looks(models).encode()})
    other = path.with_name("forged.parquet")
    pq.write_table(table, other)
    return other


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('{"run": "x"}', "topology: recorded by another version"),
        ("[]", "topology: recorded by another version"),
        ("not json", "the model of topology makes no sense"),
        ("[" * 100_000, "the model of topology makes no sense"),
    ],
)
def test_a_view_that_cannot_be_drawn_is_left_out_with_a_note(recorded: Path, text: str, note: str) -> None:
    path = forged(recorded / "first.parquet", lambda models: models.update(topology=text))

    model = wb.open_run(path).model()

    assert model["topology"] is None
    assert model["devices"] is not None
    assert [found for found in model["notes"] if found.startswith(note)]


def test_a_run_of_an_earlier_version_is_shown_without_what_it_lacks(recorded: Path) -> None:
    path = recorded / "first.parquet"
    devices = wb.open_run(path).model()["devices"]
    lacking = {name: part for name, part in devices.items() if name != "sampled"}
    path = forged(path, lambda models: models.update(devices=json.dumps(lacking)))

    model = wb.open_run(path).model()

    assert devices["sampled"]["steps"][-1] >= 9
    assert model["notes"] == []
    assert model["devices"] == lacking


def test_views_that_nobody_knows_are_ignored(recorded: Path) -> None:
    path = forged(recorded / "first.parquet", lambda models: models.update(evil="{}", run='{"path": "x"}'))

    model = wb.open_run(path).model()

    assert "evil" not in model
    assert model["run"]["path"] == str(path)


# -- comparing


def times(*microseconds: float) -> Times:
    return Times(np.array(microseconds) / 1e6, 4096)


KIND = ("all_reduce", "sum", "float32", 4096, 2)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (times(*range(90, 111)), times(*range(190, 211)), "slower"),
        (times(*range(190, 211)), times(*range(90, 111)), "faster"),
        (times(*range(0, 201, 10)), times(*range(20, 221, 10)), "alike"),  # well within the spread
        (times(*[100.0] * 50), times(*[102.0] * 50), "alike"),  # certain, but unimportant
        (times(1, 2, 3), times(100, 200, 300), "too few"),
        (None, times(1), "only in one"),
    ],
)
def test_a_verdict_is_given_only_where_it_can_be_told_from_chance(
    first: Times | None, second: Times | None, verdict: str
) -> None:
    one, other = ({} if found is None else {KIND: found} for found in (first, second))

    (row,) = compared_times(one, other)

    assert row.verdict == verdict
    if row.first and row.second:
        assert row.ratio == pytest.approx(row.second.p50_us / row.first.p50_us)
        assert row.first.p25_us <= row.first.p50_us <= row.first.p75_us
        assert row.first.busbw == pytest.approx(4096 / row.first.p50_us / 1000)


def test_what_got_slower_and_costs_most_comes_first() -> None:
    small, large = ("broadcast", "", "float32", 1024, 2), ("all_reduce", "sum", "float32", 65536, 2)
    first = {small: times(*[10.0] * 20), large: times(*[100.0] * 20)}
    second = {small: times(*[30.0] * 20), large: times(*[150.0] * 20)}

    rows = compared_times(first, second)

    assert [(row.op, row.ratio, row.difference_seconds) for row in rows] == [
        ("all_reduce", pytest.approx(1.5), pytest.approx(20 * 50e-6)),
        ("broadcast", pytest.approx(3.0), pytest.approx(20 * 20e-6)),
    ]


# -- reports and exports


class Tags(html.parser.HTMLParser):
    """The tags of a page, and what its scripts contain."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.cdata_elem == "script":
            self.scripts.append(data)


@built
def test_a_report_has_views_tables_and_a_policy_and_nothing_of_the_data_is_markup(
    recorded: Path, tmp_path: Path
) -> None:
    run = wb.open_run(recorded / "first.parquet")
    (poisoned := recorded / f"{PAYLOAD.replace('/', '∕')}.parquet").write_bytes(
        (recorded / "first.parquet").read_bytes()
    )
    others = wb.runs(recorded)
    sharding = wb.explain_sharding(wb.data.Dataset.range(10).batch(4), 2)

    path = wb.report(tmp_path / "report.html", run, others, sharding, title=PAYLOAD)

    page = Tags(path.read_text(encoding="utf-8"))
    named = [tag for tag, _ in page.tags]
    assert named.count("script") == 3
    assert "img" not in named
    assert named.count("section") == 3
    data, *_ = page.scripts
    views = json.loads(data)
    assert [view["view"] for view in views] == ["replay", "runs", "dataset_sharding"]
    assert poisoned.stem in {entry["name"] for entry in views[1]["model"]["runs"]}
    policy = next(attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert f"'nonce-{scripts[1]['nonce']}'" in policy
    assert all("src" not in attributes and "href" not in attributes for _, attributes in page.tags)


def test_a_report_names_the_time_of_a_recording_and_that_of_its_export(tmp_path: Path) -> None:
    long_ago = 1_700_000_000
    replicas = Replicas(["a", "b"])
    replicas.record(*steps(3, [0, 5000]))
    with Recorder(tmp_path / "old.parquet", anchor=Anchor(0, long_ago * 1_000_000_000)) as recorder:
        for data in replicas.drain():
            recorder.add(data)
    minute = datetime.datetime.fromtimestamp(long_ago).astimezone().isoformat(timespec="minutes")[:16]
    run = wb.open_run(tmp_path / "old.parquet")  # the file is new, as a copy would be

    assert run.model()["run"]["written"].startswith(minute)
    assert wb.runs(tmp_path)[0].model()["run"]["written"].startswith(minute)
    assert minute.replace("T", " ") in repr(wb.runs(tmp_path))
    days = [datetime.date.today()]
    text = wb.report(tmp_path / "report.html", run).read_text(encoding="utf-8")
    days.append(datetime.date.today())  # another date, if midnight came in between
    day = "|".join(map(str, days))
    line = re.escape(f"<p>run old recorded {minute.replace('T', ' ')}")
    assert re.search(rf"{line}:\d\d[+-]\d\d:\d\d, exported (?:{day}) [\d:+-]+ by workbench</p>", text)


@pytest.mark.parametrize("wall_ns", [1 << 70, -(1 << 90), 10**400])
def test_of_a_recording_without_a_sensible_time_that_of_its_file_is_shown(
    tmp_path: Path, wall_ns: int
) -> None:
    path = Recorder(tmp_path / "odd.parquet", anchor=Anchor(0, wall_ns)).close()
    os.utime(path, (1_700_000_000, 1_700_000_000))

    (entry,) = wb.runs(tmp_path)
    assert entry.problem == ""
    assert datetime.datetime.fromisoformat(entry.written).timestamp() == 1_700_000_000


def test_a_report_of_a_live_cluster_says_recorded(cluster: wb.Cluster, tmp_path: Path) -> None:
    text = wb.report(tmp_path / "report.html", wb.devices(cluster)).read_text(encoding="utf-8")
    shown = Tags(text[: text.index("<script")])

    assert "live" in wb.devices(cluster)._repr_html_()
    assert "</span> recorded<" in text
    assert "</span> live<" not in text[: text.index("<script")]
    assert [tag for tag, _ in shown.tags].count("h1") == 1


def test_a_report_needs_something_that_has_a_view(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="needs something to show"):
        wb.report(tmp_path / "report.html")
    with pytest.raises(TypeError, match="int has no view"):
        wb.report(tmp_path / "report.html", 3)
    assert list(tmp_path.iterdir()) == []


def test_clusters_strategies_and_all_that_has_a_view_give_their_model(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy, tmp_path: Path
) -> None:
    from workbench.ui.formatters import bundle_of

    shown = (cluster, strategy, wb.topology(), wb.devices(), wb.log(), wb.collectives(), wb.runs(tmp_path))
    found = [bundle_of(each, {MIME})[MIME]["view"] for each in shown]

    assert found == ["topology", "topology", "topology", "devices", "log", "collectives", "runs"]


def test_timings_are_written_as_parquet_nccl_tests_and_html(recorded: Path, tmp_path: Path) -> None:
    run = wb.open_run(recorded / "first.parquet")
    run.to_parquet(tmp_path / "records.parquet")
    text = run.to_nccl_tests(tmp_path / "nccl.json")
    run.to_html(tmp_path / "report.html")

    assert pq.read_table(tmp_path / "records.parquet").num_rows == run.to_arrow().num_rows
    assert "nranks 2" in text
    report = json.loads((tmp_path / "nccl.json").read_text(encoding="utf-8"))
    assert report["results"][0]["collective"] == "all_reduce"
    assert "all_reduce" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_facts_of_a_run_are_not_those_of_its_views(recorded: Path) -> None:
    with pytest.raises(DataCorruption):
        Facts.decode(pq.ParquetFile(recorded / "first.parquet").metadata.metadata[LOOKS_KEY])


def test_a_recording_ends_with_its_cluster(tmp_path: Path) -> None:
    with wb.connect(replicas=1, processes=False, replace=True):
        recording = wb.record(tmp_path / "runs" / "run.parquet")
    assert recording.status == "stopped"
    assert wb.open_run(tmp_path / "runs" / "run.parquet").model()["topology"]["hosts"]


@pytest.mark.parametrize("path", ["", ".", "folder", "folder.parquet", "first", "first.csv"])
def test_what_is_no_file_of_a_recording_is_refused_before_anything_is_lost(
    cluster: wb.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("folder", "folder.parquet"):
        (tmp_path / folder).mkdir()
    with pytest.raises(InvalidArgumentError, match=r"\.parquet"):
        wb.record(path)
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["folder", "folder.parquet"]
