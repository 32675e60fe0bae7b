"""Runs inside each Dask worker: accepts a driver, opens its links, creates the replica host."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
from distributed import Worker
from distributed.comm.addressing import get_address_host
from distributed.diagnostics.plugin import WorkerPlugin

from workbench import faults
from workbench.communicators.core.tcp import Tls, is_loopback
from workbench.runtime.comm.dask_link import DaskLink
from workbench.runtime.comm.links import Link, LinkClosed, MemoryLink
from workbench.runtime.comm.messages import LEAVING, PROTOCOL_VERSION
from workbench.runtime.comm.unix_endpoint import UnixEndpoint
from workbench.runtime.deploy import cut_off, host_probe
from workbench.runtime.process import blas, gpus, stack_dump, tpu
from workbench.runtime.process.gpu_use import METRIC, GpuMeter
from workbench.runtime.worker.host import ReplicaHost
from workbench.runtime.worker.signals_thread import SignalsThread

TELEMETRY_TOPIC = "workbench-telemetry"
PLUGIN_NAME = "workbench"
# Workers inside the driver's process, by address, for the driver to look up.
IN_PROCESS: dict[str, WorkerSide] = {}


class WorkbenchPlugin(WorkerPlugin):
    """Makes a Dask worker able to host replicas.

    Attributes:
      layout: worker name -> (host label, number of devices); other workers get their machine's name and `devices`.
      devices: Number of devices of a worker that `layout` does not name; 0 means all of its TPU devices.
      device_kind: "CPU"; "GPU"; "" for GPUs on workers that were started for one, else CPU; or "TPU" for workers that
        trace replica functions and run them on all of their devices.
      embedded: Whether the worker processes belong to one driver. Such workers admit no other driver, and leave the
        terminal's process group, so that Ctrl-C there reaches only the driver.
    """

    name = PLUGIN_NAME
    idempotent = True

    def __init__(
        self,
        layout: dict[str, tuple[str, int]],
        *,
        devices: int = 1,
        device_kind: str = "CPU",
        embedded: bool = False,
    ) -> None:
        self.layout = layout
        self.devices = devices
        self.device_kind = device_kind
        self.embedded = embedded
        self._sides: dict[str, WorkerSide] = {}

    def setup(self, worker: Worker) -> None:
        """Called by Dask on the worker's event loop."""
        host, devices = self.layout.get(str(worker.name), (socket.gethostname(), self.devices))
        laid_out = str(worker.name) in self.layout
        side = WorkerSide(worker, host=host, laid_out=laid_out, single_driver=self.embedded)
        side.take_shape(devices, self.device_kind)
        self._sides[worker.address] = side
        worker.handlers["workbench_describe"] = side.describe
        worker.handlers["workbench_claim"] = side.claim
        worker.handlers["workbench_release"] = side.release
        worker.handlers["workbench_link"] = side.serve_comm
        worker.handlers["workbench_share"] = side.share
        worker.metrics[METRIC] = side.gpu_use
        if worker.nanny and not self.embedded and cut_off.REJOINS not in os.environ:
            cut_off.outlast(worker, side.close)
        if threading.current_thread() is threading.main_thread():  # in a separate process
            stack_dump.offer()
            # A forked process has already loaded the modules that read these variables.
            blas.follow_environment()
            faults.arm()
        if self.embedded and threading.current_thread() is threading.main_thread():
            with contextlib.suppress(PermissionError):
                os.setsid()
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def teardown(self, worker: Worker) -> None:
        """Called by Dask when the worker closes."""
        side = self._sides.pop(worker.address, None)
        if side is not None:
            side.close()


class WorkerSide:
    """The worker's side: its holder, and the links of that driver."""

    def __init__(self, worker: Worker, *, host: str, laid_out: bool, single_driver: bool) -> None:
        self._worker = worker
        self._laid_out = laid_out
        self._device_kind = "CPU"
        self._device_count = 1
        self._single_driver = single_driver
        self._host_label = host
        self._gpu_meter: GpuMeter | None = None
        self._lock = threading.Lock()
        self._holder: dict[str, Any] | None = None
        self._pending: dict[str, Link] = {}
        self._host: ReplicaHost | None = None
        self._signals: Link | None = None
        self._endpoint = UnixEndpoint(self._accept, self._visit) if hasattr(socket, "AF_UNIX") else None
        IN_PROCESS[worker.address] = self

    def take_shape(self, devices: int, kind: str) -> None:
        """Sets number and kind of devices (see `WorkbenchPlugin`) for the next driver that opens links."""
        if kind == "TPU":
            devices = devices or tpu.devices_here()
            tpu.give_threads(devices)
        self._device_count = devices
        self._device_kind = kind or ("GPU" if gpus.assigned() else "CPU")
        self._gpu_meter = GpuMeter(self._ordinals()) if self._device_kind == "GPU" else None

    def _ordinals(self) -> list[int]:
        """The GPU of each device; several devices may share one."""
        # A worker in the driver's process runs its loop on a thread.
        in_driver = threading.current_thread() is not threading.main_thread()
        count = self._device_count
        return [gpus.ordinal(index, count, in_driver=in_driver) for index in range(count)]

    @property
    def dask_worker(self) -> Worker:
        """The Dask worker."""
        return self._worker

    async def gpu_use(self, worker: Worker) -> list[dict[str, Any]]:
        """The use of each device's GPU, as fields of `GpuUse`, for heartbeats; empty on CPUs and TPUs."""
        meter = self._gpu_meter
        return [] if meter is None else await meter.told()

    async def describe(self) -> dict[str, Any]:
        """Describes this worker for drivers that may claim it."""
        return {
            "address": self._worker.address,
            "name": str(self._worker.name),
            "pid": os.getpid(),
            "host": self._host_label,
            "laid_out": self._laid_out,
            "devices": self._device_count,
            "kind": self._device_kind,
            "gpus": await self.gpu_use(self._worker),
            "machine": machine_id(),
            "started": psutil.Process().create_time(),
            "uid": os.getuid(),
            "nanny": self._worker.nanny or "",
            "held": self._host is not None and not self._host.closed,
            "path": "" if self._endpoint is None else self._endpoint.path,
            "protocol": PROTOCOL_VERSION,
            "python": sys.version_info[:2],
            "monotonic_ns": time.monotonic_ns(),
        }

    def claim(self, holder: dict[str, Any]) -> dict[str, Any] | None:
        """Reserves this worker for a driver; if it already has a holder, returns that instead."""
        with self._lock:
            busy = self._host is not None and not self._host.closed
            if self._holder is not None and self._holder["session"] != holder["session"]:
                # A driver that has opened its links holds the worker exactly until they end.
                recent = not self._holder["linked"] and time.monotonic() - self._holder["since"] < 10.0
                if busy or recent:
                    return {
                        key: value
                        for key, value in self._holder.items()
                        if key not in ("session", "token", "linked")
                    }
            self._holder = {**holder, "since": time.monotonic(), "linked": False}
            if not self._laid_out:
                self.take_shape(holder["devices"], holder["kind"])
            return None

    def release(self, session: str) -> None:
        """Releases the worker if `session` holds it."""
        with self._lock:
            if self._holder is not None and self._holder["session"] == session:
                self._holder = None

    def open_in_process(self, token: str) -> tuple[MemoryLink, MemoryLink]:
        """Opens the links; returns the ends of a driver in this process, for steps and signals."""
        steps, host_steps = MemoryLink.pair()
        signals, host_signals = MemoryLink.pair()
        self._accept(host_steps, token, "steps")
        self._accept(host_signals, token, "signals")
        assert self._host is not None
        host_steps.deliver = self._host.dispatch
        return steps, signals

    async def serve_comm(self, comm: Any, token: str, purpose: str) -> str:
        """Turns a Dask connection into a link, for a driver on another machine."""
        link = DaskLink(comm, asyncio.get_running_loop())
        self._accept(link, token, purpose)
        await link.run()
        return "dont-reply"

    async def share(self, token: str, path: str) -> str:
        """Why this worker cannot share memory with the one that listens at `path`; "" if it can."""
        return await asyncio.to_thread(host_probe.obstacle, path, token)

    def _visit(self, sock: socket.socket, token: str, purpose: str) -> bool:
        """Answers another worker of the same driver which tests whether the two can share memory."""
        with self._lock:
            if purpose != host_probe.PURPOSE or not self._is_holders(token):
                return False
        host_probe.look(sock)
        return True

    def _is_holders(self, token: str) -> bool:
        return self._holder is not None and secrets.compare_digest(
            token.encode(), self._holder["token"].encode()
        )

    def _accept(self, link: Link, token: str, purpose: str) -> None:
        """Takes a link from the holder; with both links, the host starts."""
        with self._lock:
            if not self._is_holders(token) or purpose not in ("steps", "signals"):
                link.close()
                return
            if (abandoned := self._pending.pop(purpose, None)) is not None:
                abandoned.close()  # of a driver that opened only this one
            self._pending[purpose] = link
            if len(self._pending) < 2:
                return
            steps, signals = self._pending.pop("steps"), self._pending.pop("signals")
            if self._host is not None:
                self._host.close()
            bind_host, tls = network_of(self._worker)
            host = ReplicaHost(
                steps,
                device_count=self._device_count,
                device_kind=self._device_kind,
                host=self._host_label,
                worker=self._worker.address,
                bind_host=bind_host,
                tls=tls,
            )
            self._host = host
            if self._holder is not None:
                self._holder["linked"] = True
            self._signals = signals
        if self._single_driver and self._endpoint is not None:
            self._endpoint.close()  # no other driver will come, and a killed process could not remove its socket
        host.route_output()
        host.start()
        SignalsThread(signals, host, self._publish).start()

    def _publish(self, batch: bytes) -> None:
        """Publishes telemetry of all replicas through the scheduler, on the worker's own loop."""
        with contextlib.suppress(RuntimeError):  # the loop is closed because the worker is ending
            self._worker.loop.add_callback(self._worker.log_event, TELEMETRY_TOPIC, batch)

    def close(self) -> None:
        """Closes everything that belongs to the driver, because the worker closes."""
        IN_PROCESS.pop(self._worker.address, None)
        if self._host is not None and self._signals is not None:
            with contextlib.suppress(LinkClosed):
                self._signals.send((LEAVING, "was shut down by Dask (restarted, scaled down or closed)", ""))
            self._host.close()
        # Dask caches the handlers of closed workers, and through them this object.
        self._host = self._signals = None
        if self._endpoint is not None:
            self._endpoint.close()


def network_of(worker: Worker) -> tuple[str, Tls | None]:
    """Address and TLS with which other hosts reach this worker's replicas; the same as for the worker itself."""
    host = "" if worker.address.startswith("inproc") else str(get_address_host(worker.address))
    if not host or is_loopback(host):
        return "127.0.0.1", None
    server = worker.security.get_listen_args("worker").get("ssl_context")
    client = worker.security.get_connection_args("worker").get("ssl_context")
    return host, None if server is None or client is None else Tls(server=server, client=client)


def machine_id() -> str:
    """An id of the machine. Processes with different ids are on different machines; with equal ids, trying decides."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    try:
        return f"{socket.gethostname()}/{boot.read_text().strip()}"
    except OSError:
        return socket.gethostname()
