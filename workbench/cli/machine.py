"""The doctor's checks of the machine: cores, memory, accelerators, ports and shared memory."""

from __future__ import annotations

import array
import glob
import os
import resource
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from workbench import allowance
from workbench.cli import software
from workbench.cli.findings import Finding, note, ok, problem
from workbench.runtime.layout import default_replicas

_GIB = 1 << 30
_FEW_DESCRIPTORS = 256  # enough for a driver with a handful of workers


def resources() -> Iterator[Finding]:
    """Cores and memory that this process may use, and the limit of open files."""
    cores, replicas = allowance.cores(), default_replicas(processes=True)
    made = f"CPU:0 to CPU:{replicas - 1}" if replicas > 1 else "CPU:0"
    yield ok(f"{cores} core{'s' * (cores > 1)}: wb.connect() makes {made}")
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = allowance.memory_bytes()
    limited = f", limited to {limit / _GIB:.1f} GiB by the container" if limit < installed else ""
    yield ok(f"{installed / _GIB:.1f} GiB memory, {free / _GIB:.1f} GiB of it unused{limited}")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FEW_DESCRIPTORS:
        yield problem(
            f"only {soft} open files are allowed", f"ulimit -n {min(4096, hard) if hard > 0 else 4096}"
        )


def accelerators() -> Iterator[Finding]:
    """GPUs and TPUs that the system shows; loads no driver library."""
    names = list(_nvidia_names())
    for index, name in enumerate(names):
        yield ok(f"GPU:{index} {name}")
    if names:
        yield _cupy()
        yield _nvml()
    chips = glob.glob("/dev/accel[0-9]*")
    if chips:
        yield ok(f"{len(chips)} TPU chips")
    if not names and not chips:
        yield ok("no GPU and no TPU; replicas run on CPU devices")


def _cupy() -> Finding:
    """Whether CuPy, which drives GPUs, is installed."""
    for package in ("cupy-cuda13x", "cupy-cuda12x"):
        if number := software.version(package):
            return ok(f"{package} {number}")
    remedy = software.install("'cupy-cuda13x[ctk]'", "nvidia-nccl-cu13")
    return note("the GPUs cannot be used without CuPy", f"{remedy} (with an older driver: cuda12x, cu12)")


def _nvml() -> Finding:
    """Whether views can show how much GPUs are used."""
    if number := software.version("nvidia-ml-py"):
        return ok(f"nvidia-ml-py {number}")
    return note(
        "wb.devices cannot show the use of GPUs without nvidia-ml-py", software.install("nvidia-ml-py")
    )


def _nvidia_names() -> Iterator[str]:
    """One name per GPU, from `nvidia-smi -L`. Empty if there is none, or if it does not answer."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return
    try:
        done = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return
    for line in done.stdout.splitlines():
        if line.startswith("GPU "):
            yield line.partition(": ")[2].partition(" (UUID")[0]


def ports() -> Iterator[Finding]:
    """Whether listening works on loopback, as for the embedded cluster, and on Unix sockets, as for control streams."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), 5),
        ):
            yield ok("ports on 127.0.0.1 can be listened on and reached")
    except OSError as error:
        remedy = "check the container's network (a loopback interface must be up) and its firewall"
        yield problem(f"127.0.0.1 cannot be used: {error}", remedy)
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        try:
            server.bind(os.path.join(folder, "doctor.sock"))
            yield ok(f"Unix sockets work in {tempfile.gettempdir()}")
        except OSError as error:
            yield problem(
                f"no Unix socket in {tempfile.gettempdir()}: {error}", "set TMPDIR to a short local path"
            )


def shared_memory() -> Iterator[Finding]:
    """What collectives between processes of one host need: memory and wake-ups passed as descriptors."""
    try:
        _hand_over_descriptors()
        yield ok("memfd, eventfd and descriptor passing work: collectives on one host use shared memory")
    except (OSError, AttributeError) as error:
        yield note(
            f"memfd or eventfd is not available ({error})",
            "collectives on one host will use TCP, and be slower",
        )
    shm = Path("/dev/shm")
    if shm.is_dir():
        usage = shutil.disk_usage(shm)
        yield ok(f"/dev/shm has {usage.free / _GIB:.2f} GiB free; workbench does not depend on it")


def _hand_over_descriptors() -> None:
    """Sends a memfd and an eventfd through a socket pair and uses the received descriptors."""
    sent = [os.memfd_create("workbench-doctor"), os.eventfd(0)]
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    received: list[int] = []
    try:
        with left, right:
            socket.send_fds(left, [b"x"], sent)
            _, received, _, _ = socket.recv_fds(right, 1, len(sent))
        os.pwrite(received[0], array.array("b", [1]), 0)
        os.eventfd_write(received[1], 1)
        if os.pread(sent[0], 1, 0) != b"\x01" or os.eventfd_read(sent[1]) != 1:
            raise OSError("what one process writes does not reach the other")
    finally:
        for descriptor in (*sent, *received):
            os.close(descriptor)
