"""The leak check finds what it is there to find."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from multiprocessing.shared_memory import SharedMemory

from tests.leaks import Resources, leaked_since


def test_nothing_new_is_no_leak() -> None:
    assert leaked_since(Resources.now(), settle_seconds=0) == []


def test_a_thread_that_is_ending_is_waited_for() -> None:
    before = Resources.now()
    go = threading.Event()
    thread = threading.Thread(target=go.wait, args=(30,), name="leaky")
    thread.start()

    assert leaked_since(before, settle_seconds=0) == ["thread 'leaky'"]
    go.set()
    assert leaked_since(before) == []


def test_a_child_process_is_found() -> None:
    before = Resources.now()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        (left,) = leaked_since(before, settle_seconds=0)
        assert left.startswith(f"process {child.pid}: ")
    assert leaked_since(before) == []


def test_a_socket_is_found() -> None:
    before = Resources.now()
    with socket.socket():
        assert leaked_since(before, settle_seconds=0) == ["1 more open socket"]
    assert leaked_since(before) == []


def test_an_eventfd_and_a_memfd_are_found() -> None:
    before = Resources.now()
    descriptors = [os.eventfd(0), os.memfd_create("leaky")]

    left = leaked_since(before, settle_seconds=0)

    assert sorted(left) == ["1 more open /memfd", "1 more open anon_inode:[eventfd]"]
    for descriptor in descriptors:
        os.close(descriptor)
    assert leaked_since(before) == []


def test_a_named_segment_is_found() -> None:
    before = Resources.now()
    segment = SharedMemory(create=True, size=16)
    try:
        left = leaked_since(before, settle_seconds=0)
    finally:
        segment.close()
        segment.unlink()

    assert f"shared memory /dev/shm/{segment.name}" in left
    assert leaked_since(before) == []


def test_a_segment_of_another_program_is_no_leak() -> None:
    before = Resources.now()
    holder = (
        "import os, sys; from multiprocessing.shared_memory import SharedMemory\n"
        "segment = SharedMemory(create=True, size=16)\n"
        "if os.fork():\n"
        "    os._exit(0)\n"  # so that the process holding the segment is not a child of the test
        "print(segment.name, flush=True); sys.stdin.read(); segment.close(); segment.unlink()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        name = launcher.stdout.readline().strip()
        assert name in Resources.now().segments
        assert not [left for left in leaked_since(before, settle_seconds=0) if name in left]
