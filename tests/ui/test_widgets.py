"""Live views of a notebook: what they are sent, when, and that they end."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jupyter_client.manager import start_new_async_kernel

import workbench as wb
from workbench.telemetry.delta import merge
from workbench.telemetry.feed.feed import Feed
from workbench.ui.cluster.cluster_model import topology_model
from workbench.ui.cluster.cluster_views import ClusterView
from workbench.ui.cluster.tables import Table
from workbench.ui.sharding.dataset_model import dataset_model
from workbench.ui.sharding.dataset_source import what_if
from workbench.ui.widgets.built import STATIC, is_built
from workbench.ui.widgets.bundle import MIME, mimebundle
from workbench.ui.widgets.collectives import CollectivesSource
from workbench.ui.widgets.sources import Fixed, Polled

ROOT = Path(__file__).parents[2]
WIDGET = "application/vnd.jupyter.widget-view+json"
MAX_SENT_BYTES = 64 * 1024
CONNECT = """
import time
from pathlib import Path
import numpy as np
import workbench as wb
cluster = wb.connect(replicas=2, processes=False)
strategy = wb.MirroredStrategy()
def step():
    wb.distribute.get_replica_context().all_reduce("sum", np.ones(8))
"""
RUN_UNTIL = """
ends = time.monotonic() + 60
while not Path({path!r}).exists() and time.monotonic() < ends:
    strategy.run(step)
"""
FOLLOW_UNTIL = """
ends = time.monotonic() + 60
while not Path({path!r}).exists() and time.monotonic() < ends:
    for batch in distributed:
        strategy.run(step)
"""

built = pytest.mark.skipif(not is_built(), reason="the views are not built: python extension/hatch_build.py")


@dataclass
class _Empty:
    """A model with nothing in it."""


@dataclass
class _Count:
    count: int


class Kernel:
    """A kernel, and what it publishes.

    Attributes:
      opened: State of each widget that was opened, by id.
    """

    def __init__(self, client: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop
        self.opened: dict[str, dict[str, Any]] = {}

    def run(
        self,
        code: str,
        on_message: Callable[[dict[str, Any]], None] = lambda message: None,
        *,
        cell: str | None = None,
    ) -> dict[str, Any]:
        """Executes code; the MIME bundle that it displays, and each message while it runs to `on_message`.

        `cell`: its id, which JupyterLab tells, and other front ends do not.
        """
        request = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        metadata = {} if cell is None else {"cellId": cell}
        sent = self._client.session.msg("execute_request", request, metadata=metadata)
        self._client.shell_channel.send(sent)
        id = sent["header"]["msg_id"]
        shown: dict[str, Any] = {}
        while True:
            message = self._loop.run_until_complete(self._client.get_iopub_msg(timeout=100))
            content = message["content"]
            if message["msg_type"] == "comm_open":
                self.opened[content["comm_id"]] = content["data"]["state"]
            on_message(message)
            if message["parent_header"].get("msg_id") != id:
                continue
            if message["msg_type"] == "execute_result":
                shown = content["data"]
            elif message["msg_type"] == "error":
                raise AssertionError("\n".join(content["traceback"]))
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                return shown

    def send(self, kind: str, **content: Any) -> None:
        """Sends a message that no cell is behind."""
        self._client.shell_channel.send(self._client.session.msg(kind, content))


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """A kernel with a cluster in it."""
    loop = asyncio.new_event_loop()  # the blocking client would leave a loop of its own open
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        starting = start_new_async_kernel(
            kernel_name="python3", cwd=str(tmp_path_factory.mktemp("kernel")), startup_timeout=100
        )
        manager, client = loop.run_until_complete(starting)
    try:
        kernel = Kernel(client, loop)
        kernel.run(CONNECT)
        yield kernel
        kernel.run("cluster.close()")
    finally:
        client.stop_channels()
        loop.run_until_complete(manager.shutdown_kernel(now=True))
        loop.close()


def pushes(message: dict[str, Any]) -> dict[str, Any] | None:
    """The content of a message to a view, if this is one."""
    data = message["content"].get("data", {}) if message["msg_type"] == "comm_msg" else {}
    return data["content"] if data.get("method") == "custom" else None


@built
@pytest.mark.parametrize(
    ("code", "view"),
    [
        ("cluster", "topology"),
        ("strategy", "topology"),
        ("wb.topology()", "topology"),
        ("wb.devices()", "devices"),
        ("wb.log()", "log"),
        ("wb.collectives()", "collectives"),
        ("wb.inspect(strategy.run(lambda: np.ones(3)))", "values"),
        ("wb.explain_sharding(strategy.run(lambda: np.ones(3)))", "array_sharding"),
        ("wb.explain_sharding(wb.data.Dataset.range(10).batch(4), 2)", "dataset_sharding"),
        ("wb.data.Dataset.range(10).batch(4).explain()", "input"),
        ("wb.data.service.DispatchServer()", "data_service"),
        ("wb.distribute.ParameterServerStrategy(servers=1)", "servers"),
        ("strategy.run(lambda: np.ones(3))", "values"),
        ("wb.distribute.Mirrored((np.ones(2), np.ones(2)))", "values"),
        ("with strategy.scope(): w = wb.Variable(1.0)\nw", "values"),
        ("strategy.distribute_dataset(wb.data.Dataset.range(10).batch(4))", "dataset_sharding"),
    ],
)
def test_a_notebook_gets_text_html_the_model_and_the_live_view(kernel: Kernel, code: str, view: str) -> None:
    shown = kernel.run(code)

    assert set(shown) == {"text/plain", "text/html", MIME, WIDGET}
    state = kernel.opened[shown[WIDGET]["model_id"]]
    assert (state["view"], shown[MIME]["view"]) == (view, view)
    assert state["model"] == shown[MIME]["model"]
    assert "<script" not in shown["text/html"]
    assert max(map(len, shown["text/plain"].splitlines())) <= 88


COLAB = """
import sys, types
from anywidget import _util
sys.modules["google.colab.output"] = output = types.ModuleType("google.colab.output")
output._widgets = types.SimpleNamespace(_installed_url=None)
def enable():
    output._widgets._installed_url = "https://widgets.example/manager.js"
output.enable_custom_widget_manager = enable
"""
NO_COLAB = """
del sys.modules["google.colab.output"]
_util.enable_custom_widget_manager_once.cache_clear()
"""


@built
def test_in_colab_every_view_names_the_code_that_shows_widgets_there(kernel: Kernel) -> None:
    named: list[dict[str, Any]] = []

    def on_message(message: dict[str, Any]) -> None:
        if message["msg_type"] in ("execute_result", "display_data"):
            named.append(message["content"]["metadata"])

    kernel.run(COLAB)
    try:
        for code in (
            "cluster",
            "wb.overview()",
            "wb.log()",
            "wb.inspect(strategy.run(lambda: np.ones(3)))",
            "wb.data.Dataset.range(10).batch(4).explain()",
            "display(wb.devices())",
        ):
            kernel.run(code, on_message)
    finally:
        kernel.run(NO_COLAB)
    assert (
        named
        == [{WIDGET: {"colab": {"custom_widget_manager": {"url": "https://widgets.example/manager.js"}}}}] * 6
    )
    kernel.run("cluster", on_message)
    assert named[-1] == {}


@built
def test_a_kernel_tells_all_its_views_once_that_they_say_the_field_s_terms(kernel: Kernel) -> None:
    states: list[dict[str, Any]] = []

    def on_message(message: dict[str, Any]) -> None:
        data = message["content"].get("data", {}) if message["msg_type"] == "comm_msg" else {}
        if data.get("method") == "update" and "field_terms" in data["state"]:
            states.append(data["state"])

    kernel.run("cluster")
    (code,) = [state for state in kernel.opened.values() if "field_terms" in state]
    assert code["field_terms"] is None  # as the page has it

    kernel.run("wb.field_terms()", on_message)
    kernel.run("wb.field_terms(True)", on_message)
    kernel.run("wb.field_terms(shown=False)", on_message)
    assert states == [{"field_terms": True}, {"field_terms": False}]


@built
def test_what_a_cell_shows_is_called_as_in_the_notebook(kernel: Kernel) -> None:
    shown = kernel.run("losses = strategy.run(lambda: np.ones(3))\nlosses")

    assert shown[MIME]["model"]["values"][0]["name"] == "losses"
    assert shown["text/plain"].startswith("PerReplica:{")


@built
def test_what_has_failed_is_shown_as_text(kernel: Kernel) -> None:
    shown = kernel.run(
        "@wb.function\ndef fail(k): return 1 / k\n"
        "good = strategy.run(fail, args=(1,))\nbad = strategy.run(fail, args=(0,))\n"
        "try: bad.values\nexcept Exception: pass\nbad"
    )

    assert set(shown) == {"text/plain", "text/html"}
    assert "step failed" in shown["text/plain"]


@built
def test_a_view_follows_replicas_through_a_dataset_while_a_cell_runs(kernel: Kernel, tmp_path: Path) -> None:
    enough = tmp_path / "followed"
    kernel.run("data = wb.data.Dataset.range(100).batch(4)\ndistributed = strategy.distribute_dataset(data)")
    shown = kernel.run("distributed")
    own = shown[WIDGET]["model_id"]
    assert shown[MIME]["model"]["progress"] is None
    updates: list[dict[str, Any]] = []

    def on_message(message: dict[str, Any]) -> None:
        content = pushes(message)
        if content is not None and message["content"]["comm_id"] == own:
            updates.append(content)
            if content["kind"] == "part":
                enough.touch()

    kernel.run(FOLLOW_UNTIL.format(path=str(enough)), on_message)

    parts = [update["part"] for update in updates if update["kind"] == "part"]
    assert updates[0]["kind"] == "model"  # with the steps around the replicas' present one
    assert set(parts[0]) == {"progress"}
    assert len(parts[0]["progress"]["steps"]) == 2
    waited = parts[0]["progress"]["waited_seconds"]  # 0.0 if a batch was ready
    assert len(waited) == 2
    assert min(waited) >= 0


@built
def test_the_code_of_the_views_is_sent_once_per_kernel(kernel: Kernel) -> None:
    for _ in range(2):
        kernel.run("wb.topology()")

    assert sum("text" in state and "attach" in state["text"] for state in kernel.opened.values()) == 1


@built
def test_the_code_that_makes_files_is_sent_when_a_front_end_asks_for_it(kernel: Kernel) -> None:
    kernel.run("wb.topology()")
    assert not any("PAR1" in json.dumps(state) for state in kernel.opened.values())
    (code,) = (id for id, state in kernel.opened.items() if "attach" in state.get("text", ""))
    answers: list[dict[str, Any]] = []

    def on_message(message: dict[str, Any]) -> None:
        if (content := pushes(message)) is not None and message["content"]["comm_id"] == code:
            answers.append(content)

    kernel.send("comm_msg", comm_id=code, data={"method": "custom", "content": {"kind": "exports"}})
    kernel.send("comm_msg", comm_id=code, data={"method": "custom", "content": {"kind": "../errors"}})
    kernel.run("1", on_message)

    (answer,) = answers
    assert answer == {"kind": "exports", "text": (STATIC / "exports.js").read_text(encoding="utf-8")}


VIEWS = """
from ipywidgets.widgets import widget as _widgets
def views():
    return sorted(w.model_id for w in _widgets._instances.values() if type(w).__name__ == "ViewWidget")
"""


@built
class TestWhatIsClearedGoes:
    """Views that a front end does not show any more are not kept; those that it shows are."""

    @pytest.fixture
    def views(self, kernel: Kernel) -> Callable[[], set[str]]:
        """Those that there are, of the ones that were made since."""

        def now() -> set[str]:
            told: list[str] = []

            def on_message(message: dict[str, Any]) -> None:
                if message["msg_type"] == "stream":
                    told.extend(message["content"]["text"].split())

            kernel.run("print(*views())", on_message)
            return set(told)

        kernel.run(VIEWS)
        before = now()
        return lambda: now() - before

    def test_when_their_cell_runs_again(self, kernel: Kernel, views: Callable[[], set[str]]) -> None:
        other = kernel.run("cluster", cell="other")[WIDGET]["model_id"]
        for _ in range(3):
            last = kernel.run("cluster", cell="one")[WIDGET]["model_id"]
            assert views() == {other, last}
        without_id = kernel.run("cluster")[WIDGET]["model_id"]
        kernel.run("pass", cell="one")

        assert views() == {other, without_id}

    def test_when_the_cell_clears_its_output(self, kernel: Kernel, views: Callable[[], set[str]]) -> None:
        for wait in (True, False):
            kernel.run(
                "from IPython.display import clear_output, display\n"
                f"for _ in range(4):\n    clear_output(wait={wait})\n    display(cluster)",
                cell="clears",
            )
            assert len(views()) == 1

    def test_when_a_display_is_updated(self, kernel: Kernel, views: Callable[[], set[str]]) -> None:
        kernel.run("shown = display(cluster, display_id=True)", cell="displays")
        (first,) = views()
        kernel.run("shown.update(strategy)", cell="updates")
        (second,) = views()
        assert second != first
        kernel.run("shown.update(3)", cell="updates")
        assert views() == set()

    def test_but_not_what_an_output_widget_shows(self, kernel: Kernel, views: Callable[[], set[str]]) -> None:
        show = "with out: display(cluster)"
        kernel.run("import ipywidgets\nout = ipywidgets.Output()\nout", cell="has")
        kernel.run(show, cell="fills")
        first = views()
        kernel.run("pass", cell="fills")
        assert views() == first != set()
        kernel.run(
            "cluster\nwith out:\n    clear_output(wait=True)\n    display(cluster)\ncluster", cell="fills"
        )

        assert len(views()) == 2
        assert not first & views()


@built
def test_looking_at_a_large_variable_sends_little(kernel: Kernel) -> None:
    kernel.run("with strategy.scope(): big = wb.Variable(np.ones(1 << 22, np.float32))")
    kernel.opened.clear()

    shown = kernel.run("wb.inspect(big)")

    assert len(json.dumps([shown, kernel.opened])) <= MAX_SENT_BYTES


@built
def test_a_view_is_brought_up_to_date_while_a_cell_runs(kernel: Kernel, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    updates: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)  # by widget

    def keep(message: dict[str, Any]) -> None:
        content = pushes(message)
        if content is not None:
            updates[message["content"]["comm_id"]].append(content)

    shown = kernel.run("wb.collectives()", keep)  # records of earlier steps may come right behind it
    own, model = shown[WIDGET]["model_id"], shown[MIME]["model"]
    before = len(updates[own])

    def keep_until_enough(message: dict[str, Any]) -> None:
        keep(message)
        if len(updates[own]) - before >= 3:
            enough.touch()  # only now the cell ends, so all of these came while it ran

    kernel.run(RUN_UNTIL.format(path=str(enough)), keep_until_enough)

    snapshot = model["snapshot"]
    for update in updates[own]:
        assert update["change"]["since"] <= snapshot["version"] < update["change"]["version"]
        snapshot = merge(snapshot, update["change"])
    assert snapshot["counters"]["collectives"] > model["snapshot"]["counters"]["collectives"]
    assert len(updates[own]) - before >= 3


def test_outside_of_a_kernel_there_are_only_texts() -> None:
    bundle = mimebundle(Fixed("values", _Empty()), text="t", html="<b>h</b>")

    assert bundle == {"text/plain": "t", "text/html": "<b>h</b>"}


@built
class TestPusher:
    """The thread, without a kernel: widgets whose messages are kept."""

    @pytest.fixture
    def sent(self, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        from workbench.ui.widgets.widget import ViewWidget

        sent: list[dict[str, Any]] = []
        monkeypatch.setattr(ViewWidget, "send", lambda widget, content, buffers=None: sent.append(content))
        return sent

    def run(self, source: Any, *, watched: bool = True) -> None:
        """Pushes until the source has ended."""
        from workbench.ui.widgets.pusher import Pusher
        from workbench.ui.widgets.widget import ViewWidget

        widget = ViewWidget(source)
        widget.watched = watched
        pusher = Pusher()
        pusher.add(widget)
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "workbench-views"]
        thread.join(60)
        assert not thread.is_alive()
        widget.close()

    def test_only_what_differs_is_sent_and_the_thread_ends_with_the_source(
        self, sent: list[dict[str, Any]]
    ) -> None:
        counts = iter([0, 1, 1, 2, 2, 2])
        last = [0]

        def make() -> _Count:
            last[0] = next(counts, 3)
            return _Count(last[0])

        self.run(Polled("topology", make, interval_seconds=0.0, ended=lambda: last[0] == 3))

        assert [message["model"]["count"] for message in sent] == [1, 2, 3]

    def test_a_view_out_of_sight_costs_nothing_until_its_end(self, sent: list[dict[str, Any]]) -> None:
        asked = [0]
        ends = time.monotonic() + 0.3

        def make() -> _Count:
            asked[0] += 1
            return _Count(asked[0])

        self.run(
            Polled("topology", make, interval_seconds=0.0, ended=lambda: time.monotonic() > ends),
            watched=False,
        )

        assert asked[0] == 2  # at creation and at the end
        assert len(sent) == 1

    def test_what_costs_much_is_brought_up_to_date_when_no_cell_runs_any_more(
        self, sent: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from workbench.ui.widgets import pusher as module
        from workbench.ui.widgets.widget import ViewWidget

        monkeypatch.setattr(module, "_SHARE", 1e9)  # after a push, it rests practically forever
        asked: queue.Queue[int] = queue.Queue()
        over = threading.Event()

        def make() -> _Count:
            asked.put(0)
            return _Count(0)

        widget = ViewWidget(Polled("topology", make, interval_seconds=0.0, ended=over.is_set))
        pusher = module.Pusher()
        pusher.add(widget)
        for _ in range(2):  # at creation, and once by the thread
            asked.get(timeout=60)
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "workbench-views"]
        for watched in (True, True, False):
            widget.watched = watched
            assert asked.empty()
            pusher.begin_cell()
            pusher.end_cell()
            asked.get(timeout=60)
        over.set()
        pusher.end_cell()
        thread.join(60)
        assert not thread.is_alive()
        widget.close()

    def test_a_source_that_fails_is_given_up(
        self, sent: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
    ) -> None:
        counts = iter([_Count(0)])

        self.run(Polled("topology", lambda: next(counts), interval_seconds=0.0, ended=lambda: False))

        assert "the view topology cannot be kept up to date" in caplog.text
        assert sent == []


@built
def test_a_front_end_that_comes_later_gets_the_newest_and_others_the_whole() -> None:
    from workbench.ui.widgets.widget import ViewWidget

    numbers = iter(range(10))
    sent: list[dict[str, Any]] = []
    widget = ViewWidget(
        Polled("topology", lambda: _Count(next(numbers)), interval_seconds=0.1, ended=lambda: False)
    )
    widget.send = lambda content, buffers=None: sent.append(content)

    state = widget.get_state()
    widget.push()

    assert state["model"] == {"count": 1}
    assert sent == [{"kind": "model", "model": {"count": 2}}]
    widget.close()


@built
def test_a_view_gets_what_was_sent_before_it_was_there_unless_nothing_can_have_changed() -> None:
    from workbench.ui.widgets.widget import ViewWidget

    numbers = iter(range(10))
    counted = Polled("topology", lambda: _Count(next(numbers)), interval_seconds=0.1, ended=lambda: True)
    sent: list[dict[str, Any]] = []
    for source in (counted, Fixed("topology", _Count(7))):
        widget = ViewWidget(source)
        widget.send = lambda content, buffers=None: sent.append(content)
        widget._handle_custom_msg({"kind": "attached"}, [])
        widget.close()

    assert sent == [{"kind": "model", "model": {"count": 1}}]


@built
def test_what_cannot_be_answered_is_said_in_the_view() -> None:
    from workbench.ui.widgets.widget import ViewWidget

    def refuse(request: dict[str, Any]) -> None:
        raise ValueError(f"no {request['kind']} here")

    sent: list[dict[str, Any]] = []
    widget = ViewWidget(Fixed("runs", _Empty(), refuse))
    widget.send = lambda content, buffers=None: sent.append(content)
    widget._on_message(widget, {"kind": "open_run", "path": "x"}, [])

    assert sent == [{"kind": "problem", "text": "no open_run here"}]
    widget.close()


def test_another_layout_of_a_dataset_is_explained_on_request() -> None:
    dataset = wb.data.Dataset.range(10).batch(4)
    request = {"kind": "what_if", "batch_size": 6, "hosts": 1, "replicas_per_host": 3, "policy": "DATA"}

    model = dataset_model(what_if(dataset, request))

    assert (model.policy, model.steps, model.counts) == ("DATA", 2, (4, 4, 2))
    assert [reading.ranges for reading in model.readers[0].readings] == [((0, 1),), ((6, 7),)]
    with pytest.raises(wb.errors.InvalidArgumentError):
        what_if(dataset, request | {"hosts": 0})


@built
def test_the_view_of_a_dataset_answers_what_would_be_if(kernel: Kernel) -> None:
    shown = kernel.run("wb.explain_sharding(wb.data.Dataset.range(10).batch(4), 2)")
    own = shown[WIDGET]["model_id"]
    request = {"kind": "what_if", "batch_size": 5, "hosts": 1, "replicas_per_host": 5, "policy": "AUTO"}
    answers: list[dict[str, Any]] = []

    def on_message(message: dict[str, Any]) -> None:
        if (content := pushes(message)) is not None and message["content"]["comm_id"] == own:
            answers.append(content)

    ask = f"__import__('ipywidgets').Widget.widgets[{own!r}]"
    kernel.run(f"(lambda w: w._on_message(w, {request!r}, []))({ask})", on_message)

    (answer,) = answers
    assert answer["model"]["counts"] == [2, 2, 2, 2, 2]


def test_a_feed_that_did_not_change_sends_nothing() -> None:
    feed = Feed()
    source = CollectivesSource("collectives", feed.snapshot, lambda: "live")
    source.model()

    assert source.change() is None


def test_the_views_of_a_cluster_print(cluster: wb.Cluster, strategy: wb.MirroredStrategy) -> None:
    def speak() -> np.ndarray:
        if wb.distribute.get_replica_context().replica_id_in_sync_group == 1:
            print("spoken")
        return np.ones(2)

    strategy.run(speak)

    topology, devices, log = repr(wb.topology(strategy)), repr(wb.devices(cluster)), repr(wb.log())
    assert "cpu:1" in topology
    assert "r1" in topology
    assert "worker 1" in devices
    assert "MiB" in devices
    assert "r1@a" in log
    assert "spoken" in log
    assert max(map(len, f"{topology}\n{devices}\n{log}".splitlines())) <= 88


def test_the_text_of_a_log_says_how_much_of_it_there_is(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy.run(lambda: print("spoken"))
    cluster.flush_telemetry()
    snapshot = cluster.feed.snapshot()
    (line, *_) = snapshot.events

    def title(count: int, dropped: int) -> str:
        events = (replace(line, kind="alert"), line) * (count // 2)
        counters = replace(snapshot.counters, dropped_events=dropped)
        found = replace(snapshot, events=events, counters=counters)
        monkeypatch.setattr(cluster.feed, "snapshot", lambda: found)
        lines = repr(wb.log()).splitlines()
        assert len(lines) == 2 + min(count, 32)
        return lines[0]

    assert title(32, 0) == "Log: 32 lines, 16 alerts, live"
    assert title(512, 6000) == "Log: the newest 32 of 512 lines, 256 alerts, 6,000 older ones dropped, live"


def test_the_text_of_a_log_has_the_whole_of_long_lines(
    cluster: wb.Cluster, strategy: wb.MirroredStrategy
) -> None:
    said = " ".join(f"word{number}" for number in range(40))
    strategy.run(lambda: print(said))
    cluster.flush_telemetry()

    text = repr(wb.log())

    assert said in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 88


def test_a_table_that_is_too_wide_still_tells_hosts_apart(cluster: wb.Cluster) -> None:
    headings = ["host", "worker", "pid", "status", "memory", "device", "strategy", "replica", "now"]
    facts = ["0", "12345", "live", "300 MiB", "tpu:0", "TPUStrategy"]
    long = "step 12345: all_gather #0, waiting at train.py:41 in a_function"

    def text(hosts: str) -> list[str]:
        rows = [[host, *facts, f"r{index}", long] for index, host in enumerate(hosts)]
        source = Fixed("topology", topology_model(cluster))
        return repr(ClusterView(cluster, source, lambda: Table("Cluster", headings, rows))).splitlines()

    title, heads, first, second = text("ab")
    assert heads.split() == ["host", "status", "device", "replica", "now"]
    assert (first.split()[0], second.split()[0]) == ("a", "b")
    assert text("aa")[1].split() == ["status", "memory", "device", "replica", "now"]
    assert max(map(len, [title, heads, first, second])) <= 88


def test_a_view_of_something_else_is_refused(cluster: wb.Cluster) -> None:
    with pytest.raises(TypeError, match=r"wb\.topology\(\)"):
        wb.topology(3)  # type: ignore[arg-type]
