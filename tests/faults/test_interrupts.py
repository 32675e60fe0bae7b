"""Rows 22-25: Ctrl-C and the end of the notebook's kernel, in real kernels and terminals."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from jupyter_core.utils import ensure_event_loop

from tests.faults.conftest import PATIENCE_SECONDS, gone, until

ensure_event_loop()  # jupyter_client keeps one forever; created before leaks are counted
ROOT = Path(__file__).parents[2]
SETUP = """
import ctypes, os, pathlib, threading, time
import numpy as np
from workbench import runtime

def main(replicas):
    global cluster, group, run
    cluster = runtime.connect(replicas=replicas)
    group = cluster.group(cluster.devices, label="Test")

    def run(program, **options):
        return group.run(group.prepare(program, user_function=program), **options)

    run(lambda env: env.store.__setitem__("v", env.rank + 5))

def arrived(path, env):
    pathlib.Path(f"{path}.{env.rank}").touch()
"""


class Kernel:
    """A running kernel; `execute` returns ("ok", text) or (name of the error, its text)."""

    def __init__(self) -> None:
        self.manager = KernelManager(kernel_name="python3")
        self.manager.kernel_cmd = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager.start_kernel(cwd=str(ROOT), env={**os.environ, "PYTHONPATH": str(ROOT)})
        self.client: BlockingKernelClient = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE_SECONDS)

    def begin(self, code: str) -> str:
        return self.client.execute(code, store_history=False, stop_on_error=False)

    def end(self, request: str) -> tuple[str, str]:
        """The outcome of a cell, and what it printed."""
        texts: list[str] = []
        while True:
            message: dict[str, Any] = self.client.get_iopub_msg(timeout=PATIENCE_SECONDS)
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            if message["msg_type"] == "stream":
                texts.append(content["text"])
            elif message["msg_type"] == "execute_result":
                texts.append(content["data"]["text/plain"])
            elif message["msg_type"] == "error":
                return content["ename"], "".join(texts) + content["evalue"]
            elif message["msg_type"] == "status" and content["execution_state"] == "idle":
                return "ok", "".join(texts)

    def execute(self, code: str) -> str:
        outcome, text = self.end(self.begin(code))
        assert outcome == "ok", text
        return text

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel()
        self.manager.cleanup_resources()
        self.client.context.destroy(linger=0)


class Terminal:
    """A terminal in which a command runs in the foreground, as a shell would have started it."""

    def __init__(self, command: list[str]) -> None:
        self._driver, end = os.openpty()
        # Not by preexec_fn, which would fork this process with its many threads.
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *command],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=end,
            stdout=end,
            stderr=end,
        )
        os.close(end)

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def press_ctrl_c(self) -> None:
        os.write(self._driver, b"\x03")

    def output(self) -> str:
        """All that was printed, once the command has ended."""
        self._process.wait(PATIENCE_SECONDS)
        text = b""
        with contextlib.suppress(OSError):  # the last process has closed its end
            while part := os.read(self._driver, 4096):
                text += part
        os.close(self._driver)
        return text.decode()


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    try:
        kernel.execute(SETUP)
        kernel.execute("main(2)")
        yield kernel
    finally:
        kernel.close()


def test_row_22_interrupting_a_step_ends_the_cell_and_nothing_else(kernel: Kernel, tmp_path: Path) -> None:
    pids = kernel.execute("run(lambda env: os.getpid()).values()")
    path = tmp_path / "there"
    request = kernel.begin(f"""
def slow(env):
    env.store["v"] = -1
    arrived({str(path)!r}, env)
    if env.rank == 0:
        env.communicator.barrier()
    while True:
        time.sleep(0.01)
run(slow)
""")
    until(
        lambda: path.with_suffix(".0").exists() and path.with_suffix(".1").exists(), "the start of the step"
    )
    kernel.manager.interrupt_kernel()
    outcome, text = kernel.end(request)
    assert outcome == "RunInterrupted"
    assert "interrupted 'slow'" in text
    assert kernel.execute("run(lambda env: env.store['v']).values()") == "[5, 6]"
    assert kernel.execute("run(lambda env: os.getpid()).values()") == pids


def test_row_22_one_interrupt_ends_a_long_sleep(kernel: Kernel, tmp_path: Path) -> None:
    pids = kernel.execute("run(lambda env: os.getpid()).values()")
    path = tmp_path / "there"
    request = kernel.begin(f"""
def sleepy(env):
    arrived({str(path)!r}, env)
    time.sleep(3600)
run(sleepy)
""")
    until(
        lambda: path.with_suffix(".0").exists() and path.with_suffix(".1").exists(), "the start of the step"
    )
    kernel.manager.interrupt_kernel()
    outcome, text = kernel.end(request)
    assert outcome == "RunInterrupted"
    assert "inside C code" not in text
    assert kernel.execute("run(lambda env: os.getpid()).values()") == pids
    assert kernel.execute("time.sleep.__module__, time.sleep.__name__") == "('time', 'sleep')"


def test_row_22_interrupting_code_that_catches_everything(kernel: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "there"
    request = kernel.begin(f"""
def stubborn(env):
    arrived({str(path)!r}, env)
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            pass
run(stubborn)
""")
    until(lambda: path.with_suffix(".1").exists(), "the start of the step")
    kernel.manager.interrupt_kernel()
    assert kernel.end(request)[0] == "RunInterrupted"
    assert kernel.execute("run(lambda env: env.store['v']).values()") == "[5, 6]"


def test_row_22_interrupting_pipelined_steps(kernel: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "there"
    request = kernel.begin(f"""
def busy(env):
    env.store["v"] = -1
    arrived({str(path)!r}, env)
    np.ones(1000).sum()
prepared = group.prepare(busy, user_function=busy)
while True:
    group.run(prepared, pipelined=True)
""")
    until(lambda: path.with_suffix(".1").exists(), "the start of the steps")
    kernel.manager.interrupt_kernel()
    assert kernel.end(request)[0] in ("RunInterrupted", "KeyboardInterrupt")
    kernel.execute("group.wait()")
    assert kernel.execute("run(lambda env: env.rank).values()") == "[0, 1]"
    kernel.execute("run(lambda env: env.store.__setitem__('v', env.rank + 5))")


def test_row_23_a_second_interrupt_restarts_workers_that_are_inside_c_code(
    kernel: Kernel, tmp_path: Path
) -> None:
    pids = eval(kernel.execute("run(lambda env: os.getpid()).values()"))
    path = tmp_path / "there"
    request = kernel.begin(f"""
def deep(env):
    arrived({str(path)!r}, env)
    if env.rank == 1:
        ctypes.PyDLL(None).sleep(60)
run(deep)
""")
    until(lambda: path.with_suffix(".1").exists(), "the start of the step")
    kernel.manager.interrupt_kernel()
    while "inside C code" not in (message := kernel.client.get_iopub_msg(timeout=PATIENCE_SECONDS))[
        "content"
    ].get("text", ""):
        assert message["msg_type"] != "error"
    kernel.manager.interrupt_kernel()
    assert kernel.end(request)[0] == "RunInterrupted"
    until(lambda: gone(pids[1]), "the end of the worker in C code")
    after = eval(kernel.execute("run(lambda env: os.getpid()).values()"))
    assert after[0] == pids[0]
    assert after[1] != pids[1]
    kernel.execute("run(lambda env: env.store.__setitem__('v', env.rank + 5))")


def test_row_23_that_values_are_lost_with_all_workers_is_said(kernel: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "there"
    request = kernel.begin(f"""
def deep(env):
    arrived({str(path)!r}, env)
    ctypes.PyDLL(None).sleep(60)
run(deep)
""")
    until(
        lambda: path.with_suffix(".1").exists() and path.with_suffix(".0").exists(), "the start of the step"
    )
    kernel.manager.interrupt_kernel()
    while "inside C code" not in (message := kernel.client.get_iopub_msg(timeout=PATIENCE_SECONDS))[
        "content"
    ].get("text", ""):
        assert message["msg_type"] != "error"
    kernel.manager.interrupt_kernel()
    name, text = kernel.end(request)
    assert name == "RunInterrupted"
    assert "all its workers had to be ended, and the values of variables with them" in text
    kernel.execute("run(lambda env: env.store.__setitem__('v', env.rank + 5))")


@pytest.mark.parametrize("how", ["processes", "threads"])
def test_row_24_ctrl_c_in_a_terminal_stops_the_step_and_leaves_the_workers(tmp_path: Path, how: str) -> None:
    path = tmp_path / "there"
    script = tmp_path / "script.py"
    script.write_text(
        f"""
import os, pathlib, time
import workbench as wb

cluster = wb.connect(replicas=2, processes={how == "processes"})
strategy = wb.MirroredStrategy()
with strategy.scope():
    v = wb.Variable(1.0)
before = strategy.run(os.getpid).values

def step():
    v.assign(2.0)
    rank = wb.distribute.get_replica_context().replica_id_in_sync_group
    pathlib.Path({str(path)!r} + f".{{rank}}").touch()
    time.sleep(3600) if rank == 0 else wb.distribute.get_replica_context().all_reduce("sum", 1.0)

try:
    strategy.run(step)
except KeyboardInterrupt as error:
    print(type(error).__name__)
print(before == strategy.run(os.getpid).values, float(v))
cluster.close()
"""
    )
    terminal = Terminal([sys.executable, str(script)])
    until(
        lambda: (path.with_suffix(".0").exists() and path.with_suffix(".1").exists()) or terminal.ended,
        "the start of the step",
    )
    terminal.press_ctrl_c()
    assert terminal.output().split() == ["^CRunInterrupted", "True", "1.0"]


def test_row_25_no_worker_outlives_a_killed_kernel() -> None:
    kernel = Kernel()
    try:
        kernel.execute(SETUP)
        kernel.execute("main(2)")
        pids = eval(kernel.execute("run(lambda env: os.getpid()).values()"))
        provisioner: Any = kernel.manager.provisioner
        pid = provisioner.process.pid
        maps = Path(f"/proc/{pid}/maps").read_text().split()
        semaphores = [Path(word) for word in maps if word.startswith("/dev/shm/sem.mp-")]
        os.kill(pid, signal.SIGKILL)
        until(lambda: all(gone(pid) for pid in pids), "the end of the workers")
        until(lambda: not any(path.exists() for path in semaphores), "the removal of semaphores")
    finally:
        kernel.close()
