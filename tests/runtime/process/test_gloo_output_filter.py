"""Lines that say that all is well are left out of the raw output; nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Thread

import pytest

from workbench.runtime.process.gloo_output_filter import pass_on

WELL = b"[Gloo] Rank 1 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3\n"
MISSING = b"[Gloo] Rank 1 is connected to 2 peer ranks. Expected number of connected peer ranks is : 3\n"


def passed_on(*pieces: bytes) -> bytes:
    """What comes out of pieces that are written one after the other."""
    source, writing = os.pipe()
    reading, target = os.pipe()
    thread = Thread(target=pass_on, args=(source, target))
    thread.start()
    try:
        for piece in pieces:
            os.write(writing, piece)
    finally:
        os.close(writing)
        thread.join(10)
        os.close(target)
        with os.fdopen(reading, "rb") as out:
            rest = out.read()
        os.close(source)
    return rest


@pytest.mark.parametrize(
    ("pieces", "out"),
    [
        ([WELL], b""),
        ([b"a\n" + WELL + b"b\n" + WELL], b"a\nb\n"),
        ([WELL[:3], WELL[3:30], WELL[30:], b"after"], b"after"),
        ([WELL[:-1] + b"\r\n", b"x\r\n"], b"x\r\n"),
        ([MISSING], MISSING),
        ([b"[Gloo] Rank 0" + WELL + WELL[13:] + b"x\n"], b"x\n"),
        ([b"[Gloo] Rank 0" + MISSING], b"[Gloo] Rank 0" + MISSING),
        ([WELL[:40]], WELL[:40]),
        ([b"[Gloo] Rank 1 cannot connect\n"], b"[Gloo] Rank 1 cannot connect\n"),
        ([b"\xff\x00no text\n", b"\n\n"], b"\xff\x00no text\n\n\n"),
    ],
)
def test_only_whole_lines_that_tell_of_success_are_left_out(pieces: list[bytes], out: bytes) -> None:
    assert passed_on(*pieces) == out


def test_what_is_no_such_line_is_not_held_back_until_the_line_ends() -> None:
    source, writing = os.pipe()
    reading, target = os.pipe()
    thread = Thread(target=pass_on, args=(source, target))
    thread.start()
    try:
        for piece in (b"50 %", b"\r60 %", b" [y/n] "):
            os.write(writing, piece)
            # Would otherwise wait forever; then the test's timeout reports it.
            assert os.read(reading, 100) == piece
    finally:
        os.close(writing)
        thread.join(10)
        for descriptor in (source, reading, target):
            os.close(descriptor)


def test_who_writes_goes_on_where_nobody_reads_any_more() -> None:
    source, writing = os.pipe()
    reading, target = os.pipe()
    os.close(reading)
    thread = Thread(target=pass_on, args=(source, target))
    thread.start()
    for _ in range(64):
        os.write(writing, b"x" * 4096)
    os.close(writing)
    thread.join(10)
    assert not thread.is_alive()
    os.close(source)
    os.close(target)


def test_workers_on_several_emulated_hosts_print_what_replicas_print_and_no_more() -> None:
    pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
    program = """
import os
import numpy as np
import workbench as wb

def step(x):
    return wb.distribute.get_replica_context().all_reduce("SUM", x)

def prints_past_python(_):
    os.write(1, b"raw\\n")

with wb.connect(hosts=2, tpu=1):
    strategy = wb.TPUStrategy()
    total = strategy.run(step, (np.float32(2),))
    print(*map(float, strategy.local_results(total)))
    strategy.run_internal(prints_past_python)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=110
    )
    assert sorted(done.stdout.splitlines()) == ["4.0 4.0", "raw", "raw"]
    assert "Gloo" not in done.stderr
