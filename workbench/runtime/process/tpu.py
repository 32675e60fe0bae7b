"""TPU hosts: detects TPUs, and prepares the workers' and the notebook's processes for JAX."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from workbench.errors import LibraryMissing
from workbench.extras import install_command
from workbench.runtime.process import gloo_output_filter

# Several steps are in progress at once, each with a thread per device. An emulated device without a free thread would
# deadlock all others, which wait for it in a collective.
_THREADS_PER_DEVICE = 4
_EMULATED = "cpu"  # in JAX_PLATFORMS


def chips() -> int:
    """The number of TPU chips of this machine; does not take them."""
    if importlib.util.find_spec("libtpu") is None:
        return 0
    return len(list(Path("/dev").glob("accel[0-9]*")))


def has_tpu() -> bool:
    """Whether this machine has TPU chips."""
    return chips() > 0


def devices_here() -> int:
    """The number of TPU devices of a worker in this process: its chips, or emulated ones by JAX's environment."""
    if os.environ.get("JAX_PLATFORMS") != _EMULATED:
        return max(1, chips())
    found = os.environ.get("JAX_NUM_CPU_DEVICES", "")
    return int(found) if found.isdecimal() and int(found) else 1


def give_threads(devices: int) -> None:
    """Makes JAX start enough threads for this many emulated devices in this process."""
    if os.environ.get("JAX_PLATFORMS") == _EMULATED:
        os.environ.setdefault("NPROC", str(_THREADS_PER_DEVICE * devices))


def worker_environment(devices: int) -> dict[str, str]:
    """Environment variables of a worker with this many TPU devices, which are emulated if there are no chips.

    Raises:
      LibraryMissing: if JAX is not installed.
    """
    if importlib.util.find_spec("jax") is None:
        raise LibraryMissing(
            f"wb.connect(tpu=...) needs JAX: {install_command('jax')} (tpu instead of jax on TPU hosts)"
        )
    if has_tpu():
        return {"JAX_PLATFORMS": "tpu,cpu"}
    return {"JAX_PLATFORMS": _EMULATED, "NPROC": str(_THREADS_PER_DEVICE * devices)}


def before_meeting() -> None:
    """Prepares this worker for JAX, which will connect it to those of other hosts."""
    if os.environ.get("JAX_PLATFORMS") == _EMULATED:
        gloo_output_filter.leave_out()


def keep_notebook_off() -> None:
    """Makes JAX use the CPU in the notebook's process, so that it does not take the chips that the workers need."""
    if "jax" not in sys.modules:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
