"""What an open view costs the kernel of a notebook, and the job, while 10,000 records a second arrive.

The way is the whole one: replicas in two processes write a record for each collective, these travel to the kernel, are
folded there, and changes go out on the comm of a view. The kernel does nothing else. The view is open and hidden in
turn, and told so as by a page; a page's own work is not counted, as it is the browser's.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
from jupyter_client.manager import start_new_kernel

import workbench as wb
from tests.benchmarks.measure import Script

RECORDS_PER_SECOND = 10_000
BURSTS_PER_SECOND = 100
REPLICAS = 2
WIDGET = "application/vnd.jupyter.widget-view+json"
CONNECT = """
import json, threading
import numpy as np, workbench as wb
from tests.benchmarks.ours.views.flood import bursts
cluster = wb.connect(replicas={replicas})
strategy = wb.MirroredStrategy()
strategy.run(bursts, (3,))
view = wb.collectives()
"""
START = """
found = []
job = threading.Thread(target=lambda: found.append(strategy.local_results(strategy.run(bursts, ({number},)))[0]))
job.start()
"""
END = """
job.join()
print(json.dumps(found[0].tolist()))
cluster.close()
"""
_PATIENCE_SECONDS = 120.0
_SETTLING_SECONDS = 0.5


def bursts(number: int) -> Any:
    """Runs on each replica: makes all_reduces of 1 KB at a fixed rate; when each burst began, and how long it took."""
    context = wb.distribute.get_replica_context()
    assert context is not None
    array = np.ones(256, np.float32)
    in_a_burst = RECORDS_PER_SECOND // REPLICAS // BURSTS_PER_SECOND
    times = np.zeros((number, 2))
    due = time.monotonic()
    for burst in range(number):
        began = time.monotonic()
        for _ in range(in_a_burst):
            context.all_reduce("sum", array)
        times[burst] = began, time.monotonic() - began
        due += 1 / BURSTS_PER_SECOND
        time.sleep(max(0.0, due - time.monotonic()))
    return times


@dataclass(frozen=True, slots=True)
class Look:
    """A while during which the view was open, or hidden.

    Attributes:
      visible: Whether it was open.
      began: By `time.monotonic`.
      ended: Likewise.
      cpu_share: CPU of the kernel's process, of one core.
      messages: Updates that the view was sent.
    """

    visible: bool
    began: float
    ended: float
    cpu_share: float
    messages: int


class Notebook:
    """A kernel, and a front end that only counts what it is sent."""

    def __init__(self) -> None:
        self._manager, self._client = start_new_kernel()
        self._kernel = psutil.Process(self._manager.provisioner.pid)
        self._comm = ""

    def close(self) -> None:
        """Ends the kernel."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def run(self, code: str) -> str:
        """Runs a cell; gives what it printed. A view among its outputs becomes the one that is hidden and shown.

        Raises:
          RuntimeError: if the cell failed.
        """
        printed: list[str] = []

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                printed.append(content["text"])
            elif WIDGET in content.get("data", {}):
                self._comm = content["data"][WIDGET]["model_id"]

        reply = self._client.execute_interactive(code, output_hook=take, timeout=_PATIENCE_SECONDS)
        if reply["content"]["status"] != "ok":
            raise RuntimeError("\n".join(reply["content"]["traceback"]))
        return "".join(printed)

    def look(self, *, visible: bool, seconds: float) -> Look:
        """Opens or hides the view, and sees for a while what that costs."""
        state = {"method": "custom", "content": {"kind": "visible", "visible": visible}}
        message = self._client.session.msg("comm_msg", {"comm_id": self._comm, "data": state})
        self._client.shell_channel.send(message)
        self._received(_SETTLING_SECONDS)
        began, before = time.monotonic(), sum(self._kernel.cpu_times()[:2])
        messages = self._received(seconds)
        ended, after = time.monotonic(), sum(self._kernel.cpu_times()[:2])
        return Look(visible, began, ended, (after - before) / (ended - began), messages)

    def _received(self, seconds: float) -> int:
        """How many updates arrive within that time."""
        ends, updates = time.monotonic() + seconds, 0
        while (left := ends - time.monotonic()) > 0:
            if self._client.iopub_channel.is_alive() and self._client.iopub_channel.socket.poll(1000 * left):
                message = self._client.get_iopub_msg(timeout=1)
                updates += message["msg_type"] == "comm_msg"
        return updates


def main() -> None:
    """Measures it: the view is open for 60 s in all, a short while at a time, as the speed of machines drifts."""
    script = Script("views", __doc__, looks=30)
    looks = script.options.looks
    seconds = 2.0 * script.options.scale
    notebook = Notebook()
    try:
        notebook.run(CONNECT.format(replicas=REPLICAS) + "view")
        number = int((2 * looks * (seconds + _SETTLING_SECONDS + 0.2) + 2) * BURSTS_PER_SECOND)
        notebook.run(START.format(number=number))
        found = [notebook.look(visible=bool(turn % 2), seconds=seconds) for turn in range(2 * looks)]
        times = np.array(json.loads(notebook.run(END)))
    finally:
        notebook.close()
    report(script, found, times)


def report(script: Script, looks: list[Look], times: np.ndarray) -> None:
    """Writes the cases; `times` is what `bursts` gave, shape `(bursts, 2)`."""
    records = RECORDS_PER_SECOND / BURSTS_PER_SECOND
    took: dict[bool, list[float]] = {True: [], False: []}
    rates = []
    for look in looks:
        inside = times[(times[:, 0] >= look.began) & (times[:, 0] < look.ended)]
        took[look.visible].append(float(np.median(inside[:, 1])))
        rates.append(len(inside) * records / (look.ended - look.began))
    slower = [shown / hidden - 1 for shown, hidden in zip(took[True], took[False], strict=True)]
    for what, unit, scale, samples in (
        ("flood, records", "records/s", 1.0, rates),
        ("flood, kernel, view open", "% of a core", 100.0, [x.cpu_share for x in looks if x.visible]),
        ("flood, kernel, view hidden", "% of a core", 100.0, [x.cpu_share for x in looks if not x.visible]),
        ("flood, updates sent", "1/s", 1.0, [x.messages / (x.ended - x.began) for x in looks if x.visible]),
        ("flood, slow-down of the job", "%", 100.0, slower),
    ):
        with script.case("workbench", what, unit=unit, scale=scale, replicas=REPLICAS) as case:
            case.samples = samples


if __name__ == "__main__":
    main()
