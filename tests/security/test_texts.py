"""Row 39, outputs of Python: whatever users, files and strangers write is shown as text, in terminals too."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.security.payloads import HARMLESS, KINDS, PAYLOADS, SOME, Markup, acts_on_a_terminal, encodable
from tests.security.runs import write_run
from workbench.errors import WorkbenchError
from workbench.telemetry.feed.sweeps import Baseline, Sweep, SweepPoint
from workbench.telemetry.verdicts import Verdict
from workbench.ui.cells.replica_cells import CellOutputs
from workbench.ui.cells.replica_session import Outcome
from workbench.ui.cluster.cluster_views import ClusterView
from workbench.ui.cluster.diagnosis import Diagnosis
from workbench.ui.cluster.reports import WorkerReport
from workbench.ui.cluster.tables import devices_table, log_table, topology_table
from workbench.ui.collectives.sweep_baseline import comparison_text
from workbench.ui.formatters import bundle_of
from workbench.ui.models.sharding import ArrayPart, ArraySharding
from workbench.ui.sharding.explain_sharding import ArrayShardingView
from workbench.ui.widgets.bundle import MIME

Shown = tuple[str, str]
"""What an output has as text/plain and as text/html."""


@dataclass(slots=True)
class Scene:
    """Where places get what they show from.

    Attributes:
      cluster: Two replicas in this process.
      strategy: Over them.
      folder: For files.
    """

    cluster: wb.Cluster
    strategy: wb.MirroredStrategy
    folder: Path


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with wb.connect(replicas=2, processes=False) as cluster:
        yield Scene(cluster, wb.MirroredStrategy(), tmp_path_factory.mktemp("texts"))


def shown(value: Any) -> Shown:
    """As a notebook shows it."""
    try:
        bundle = bundle_of(value, {MIME})
    except TypeError:
        bundle = {"text/plain": repr(value), "text/html": value._repr_html_()}
    json.dumps(bundle, ensure_ascii=False).encode()  # it can be sent and saved
    return bundle["text/plain"], bundle["text/html"]


# -- the places ---------------------------------------------------------------------------------------------------


def variable(scene: Scene, text: str) -> Iterator[Shown]:
    with scene.strategy.scope():
        made = wb.Variable(np.ones(2), name=text or "empty")
    yield shown(made)
    yield shown(wb.inspect(made))


def name_of_a_value(scene: Scene, text: str) -> Iterator[Shown]:
    yield shown(wb.inspect(np.ones(3), name=text))


def keys_of_nested_values(scene: Scene, text: str) -> Iterator[Shown]:
    yield shown(wb.inspect({text: {text: np.ones(2)}}))
    yield shown(scene.strategy.run(lambda: {"inner": {text: 1}})["inner"][text])


def texts_in_arrays(scene: Scene, text: str) -> Iterator[Shown]:
    held = np.array([text, "x"], dtype=object)
    yield shown(wb.distribute.PerReplica((held, held)))
    yield shown(wb.distribute.PerReplica((text, {text: text})))


def repr_of_a_users_class(scene: Scene, text: str) -> Iterator[Shown]:
    class Own:
        def __repr__(self) -> str:
            return text

    yield shown(wb.distribute.PerReplica((Own(), Own())))


def what_a_cell_prints_returns_and_raises(scene: Scene, text: str) -> Iterator[Shown]:
    outcomes = [Outcome(0, True, text, text, text, text, text), Outcome(1, True, stdout=text + "1")]
    for group in ("replica", "stream", "diff"):
        yield shown(CellOutputs(outcomes, group=group))


def lines_of_the_log(scene: Scene, text: str) -> Iterator[Shown]:
    snapshot = recorded_run(scene, text).snapshot
    yield shown(ClusterView(scene.cluster, _nothing(), lambda: log_table(snapshot, ended=False)))


def hosts_workers_and_devices(scene: Scene, text: str) -> Iterator[Shown]:
    models = wb.open_run(run_of(scene, text)).model()
    topology, devices = (_attributes(models[view]) for view in ("topology", "devices"))
    yield shown(ClusterView(scene.cluster, _nothing(), lambda: topology_table(topology)))
    yield shown(ClusterView(scene.cluster, _nothing(), lambda: devices_table(devices)))


def columns_of_a_recorded_run(scene: Scene, text: str) -> Iterator[Shown]:
    run = recorded_run(scene, text)
    yield shown(run)
    yield run.to_nccl_tests(), ""
    yield shown(wb.open_run(run.path, internal=True))


def names_of_recorded_runs(scene: Scene, text: str) -> Iterator[Shown]:
    name = "".join(character for character in text if character not in "/\0")[:60]
    name = name.encode("utf-8", "ignore").decode().lstrip(".") or "empty"  # hidden files are not listed
    folder = scene.folder / "named"
    folder.mkdir(exist_ok=True)
    undecodable = folder / f"{name}\udcff.parquet"
    undecodable.write_bytes(b"damaged")
    yield shown(wb.runs(folder))
    path = undecodable.rename(folder / f"{name}.parquet")
    path.write_bytes(run_of(scene, HARMLESS).read_bytes())
    yield shown(wb.open_run(path))
    runs = wb.runs(folder)
    yield shown(runs)
    yield shown(runs.compare(0, 0))
    path.unlink()
    yield shown(wb.runs(folder / name))


def sites_and_workers_of_a_diagnosis(scene: Scene, text: str) -> Iterator[Shown]:
    worker = WorkerReport(text, text, text, 1, text or "gone", True, "T", 9.0, text)
    said = [Verdict("error", "gone", text, text, "log"), Verdict("warning", "late", text, text, "lanes")]
    yield shown(Diagnosis(run=text, status="live", workers=[worker], groups=[], said=said))


def files_and_labels_of_a_dataset(scene: Scene, text: str) -> Iterator[Shown]:
    dataset = wb.data.Dataset.range(4).batch(2)
    sharding = wb.explain_sharding(dataset, 2)
    yield shown(
        replace(sharding, reason=text, files=((text,),), limit=text, labels=dict.fromkeys(range(4), text))
    )
    yield shown(wb.data.Dataset.from_tensor_slices({text: np.arange(4)}))


def parts_of_an_array(scene: Scene, text: str) -> Iterator[Shown]:
    part = ArrayPart(0, text, text, (0,), (2,), 16)
    yield shown(ArrayShardingView(ArraySharding(text, text, (2,), text, (part,), 16, 0.0, text)))


def name_of_a_sweeps_baseline(scene: Scene, text: str) -> Iterator[Shown]:
    point = SweepPoint(8, 1, 1.0, 1.0, 1.0, None, None, None)
    sweep = Sweep("key", "all_reduce", "sum", "float32", "g", 2, "shm", (point,), None, None, None, None)
    yield comparison_text(replace(sweep, baseline=Baseline(text, 3, text, (point,)))), ""
    yield comparison_text(replace(sweep, baseline=Baseline(text, 2, text, ()))), ""


PLACES: dict[str, Callable[[Scene, str], Iterator[Shown]]] = {
    "names of variables": variable,
    "names of inspected values": name_of_a_value,
    "keys of nested values": keys_of_nested_values,
    "texts in arrays and values": texts_in_arrays,
    "repr of a user's class": repr_of_a_users_class,
    "output, results, exceptions of %%replica": what_a_cell_prints_returns_and_raises,
    "stdout, stderr, alerts in wb.log": lines_of_the_log,
    "hosts, workers, devices, strategies": hosts_workers_and_devices,
    "all columns of recorded runs: groups, operations, call sites": columns_of_a_recorded_run,
    "names of recorded runs, folders": names_of_recorded_runs,
    "workers, sites, stacks in wb.diagnose": sites_and_workers_of_a_diagnosis,
    "files, labels, keys of datasets": files_and_labels_of_a_dataset,
    "hosts, names, sentences of sharded arrays": parts_of_an_array,
    "files of sweeps": name_of_a_sweeps_baseline,
}
"""Every place where Python shows what somebody else has written. Drawn views and pages are in `test_views.py` and
`test_pages.py`, files for other programs in `test_trace_files.py`."""


@functools.cache
def _run_file(folder: Path, text: str) -> Path:
    return write_run(folder / f"{abs(hash(text))}.parquet", [encodable(text)] * 3)


def run_of(scene: Scene, text: str) -> Path:
    return _run_file(scene.folder, text)


def recorded_run(scene: Scene, text: str) -> Any:
    return wb.open_run(run_of(scene, text))


def _nothing() -> Any:
    from workbench.ui.widgets.sources import Given

    return Given("log", dict, lambda request: None)


class _Attributes(dict[str, Any]):
    """A dict whose keys are attributes, like a model's; what runs of earlier versions lack is empty."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name, "")


def _attributes(value: Any) -> Any:
    if isinstance(value, dict):
        return _Attributes({key: _attributes(part) for key, part in value.items()})
    return [_attributes(part) for part in value] if isinstance(value, list) else value


# -- the checks ---------------------------------------------------------------------------------------------------


def test_the_corpus_is_large_and_nothing_comes_twice() -> None:
    assert len(PAYLOADS) >= 150
    assert len(set(PAYLOADS)) == len(PAYLOADS)
    assert min(map(len, KINDS.values())) >= 8


@pytest.mark.parametrize("place", PLACES)
def test_a_harmless_text_is_seen_in_each_place(scene: Scene, place: str) -> None:
    """Otherwise the next test would look at nothing."""
    outputs = list(PLACES[place](scene, HARMLESS))

    assert any(HARMLESS in text for text, _ in outputs)
    assert all(HARMLESS in Markup(html).text for text, html in outputs if html and HARMLESS in text)


def _named_alike(html: str) -> str:
    """With one fixed id in place of those that each output draws at random."""
    return re.sub(r"\bwb-[0-9a-f]{12}\b", "wb-id", html)


SLOW = (hosts_workers_and_devices, columns_of_a_recorded_run, names_of_recorded_runs)
"""They write files for each text."""


@pytest.mark.parametrize(
    ("place", "payloads"),
    [
        *(pytest.param(name, SOME if show in SLOW else PAYLOADS, id=name) for name, show in PLACES.items()),
        *(
            pytest.param(name, PAYLOADS, id=f"{name}: all texts", marks=pytest.mark.thorough)
            for name, show in PLACES.items()
            if show in SLOW
        ),
    ],
)
def test_a_hostile_text_is_seen_and_does_nothing(scene: Scene, place: str, payloads: tuple[str, ...]) -> None:
    show = PLACES[place]
    outputs = zip(show(scene, HARMLESS), show(scene, ""), strict=True)
    known = [
        Markup(_named_alike(one)).elements | Markup(_named_alike(empty)).elements
        for (_, one), (_, empty) in outputs
    ]

    for payload in payloads:
        for number, (text, html) in enumerate(show(scene, payload)):
            assert acts_on_a_terminal(text) == set(), (payload[:80], text[:200])
            assert Markup(_named_alike(html)).elements <= known[number], (payload[:80], html[:200])
            assert acts_on_a_terminal(html) == set(), payload[:80]


def test_what_would_act_is_found() -> None:
    """The checks of this file see what they look for."""
    assert acts_on_a_terminal("a\x1b[31m\u202e\r\n\t\ud800") == {"\x1b", "\u202e", "\r", "\ud800"}
    found = {tag for payload in PAYLOADS for tag, _ in Markup(f"<p>{payload}</p>").elements}
    assert {"script", "img", "svg", "iframe", "![", "object", "base"} <= found


def test_errors_of_replicas_keep_their_text_whatever_it_is(scene: Scene) -> None:
    for payload in PAYLOADS:
        short = payload[:2000]

        def fail(text: str = short) -> None:
            raise ValueError(text)

        with pytest.raises(WorkbenchError) as error:
            scene.strategy.run(fail)
        assert encodable(short.strip()).split("\n")[0].strip()[:200] in encodable(str(error.value))


def test_what_replicas_print_can_be_sent_and_saved(capsys: pytest.CaptureFixture[str]) -> None:
    name = "\udcff.py"
    namespace: dict[str, Any] = {"wb": wb}
    exec(
        compile(
            "def step():\n print('\\ud800')\n wb.distribute.get_replica_context().all_reduce('sum', 1.0)",
            name,
            "exec",
        ),
        namespace,
    )
    with wb.connect(replicas=2, processes=False, replace=True) as cluster:
        wb.MirroredStrategy().run(namespace["step"])
        cluster.flush_telemetry(60)

        assert "[replica 1] \\ud800\n" in capsys.readouterr().out
        assert "\\ud800" in shown(wb.log(cluster))[0]
        sites = {item.site for group in cluster.feed.snapshot().groups for item in group.items}
        assert "\\udcff.py:3" in sites
