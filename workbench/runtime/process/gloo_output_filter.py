"""Removes Gloo's messages about each new connection from a process's output.

JAX uses Gloo for collectives between processes on CPUs. For each group of devices, Gloo prints the number of connected
peers to the raw standard output, without a setting to prevent that. If all are connected, the message has no use.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading

_START = b"[Gloo] Rank "
_NAME = rb"\[Gloo\] Rank \d+"
_TOLD = rb" is connected to (\d+) peer ranks\. Expected number of connected peer ranks is : (\d+)"
# Lines of one process's devices may interleave after the name.
_NEWS = re.compile(rb"(?:" + _NAME + rb"|" + _TOLD + rb")+\r?\n")
_STDOUT = 1
_CHUNK_BYTES = 64 * 1024
_lock = threading.Lock()
_installed = False


def leave_out() -> None:
    """Routes the raw standard output of this process through the filter from now on. Idempotent."""
    global _installed
    with _lock, contextlib.suppress(OSError):  # without a standard output, there is nothing to filter
        if _installed:
            return
        target = os.dup(_STDOUT)
        source, writing = os.pipe()
        os.dup2(writing, _STDOUT)
        os.close(writing)
        _installed = True
        threading.Thread(
            target=pass_on, args=(source, target), name="workbench-gloo-lines", daemon=True
        ).start()


def pass_on(source: int, target: int) -> None:
    """Copies `source` to `target` without these lines, until `source` ends.

    Text that does not begin like them is passed on at once: it may be a prompt, or a growing progress bar.
    """
    held = b""
    while data := os.read(source, _CHUNK_BYTES):
        *lines, held = (held + data).splitlines(keepends=True) + [b""] * data.endswith(b"\n")
        kept = [line for line in lines if not _is_news_of_success(line)]
        if not held.startswith(_START[: len(held)]):
            kept, held = [*kept, held], b""
        _write(target, b"".join(kept))
    _write(target, held)


def _is_news_of_success(line: bytes) -> bool:
    return _NEWS.fullmatch(line) is not None and all(are == should for are, should in re.findall(_TOLD, line))


def _write(target: int, data: bytes) -> None:
    with contextlib.suppress(OSError):  # it is not read any more; writers must not block
        while data:
            data = data[os.write(target, data) :]
