"""The memory that a pipeline takes while it reads a file of 1 GiB, with 256 MiB allowed.

The system refuses the process more than that (RLIMIT_DATA: heap and anonymous memory), so the case fails if the
pipeline wants it. The figure is the most that was resident, beyond what the process had before; pages of the file that
the system keeps are not counted, as it can take them back.
"""

from __future__ import annotations

import re
import resource
from pathlib import Path

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script
from workbench.data import TFRecordDataset

_ALLOWED_BYTES = 256 << 20
_EVERY = 64


def _status_bytes(name: str) -> int:
    """A line of /proc/self/status, such as "RssAnon" (resident) or "VmData" (what RLIMIT_DATA counts)."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) << 10


def main() -> None:
    """Measures the peak."""
    script = Script("input", __doc__)
    if not script.wants("workbench", cases.MEMORY):
        return
    path = cases.file("large.tfrecord")
    for _ in TFRecordDataset(cases.record_files()[0]).batch(cases.BATCH):  # covers its imports
        pass
    allowed = _status_bytes("VmData") + _ALLOWED_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
    before = _status_bytes("RssAnon")
    peak = before
    with script.case("workbench", cases.MEMORY, unit="MiB", scale=1 / (1 << 20), replicas=0) as case:
        batches = TFRecordDataset(path).shuffle(10_000).batch(cases.BATCH).prefetch(4)
        for number, _ in enumerate(batches):
            if number % _EVERY == 0:
                peak = max(peak, _status_bytes("RssAnon"))
        case.samples = [float(peak - before)]


if __name__ == "__main__":
    main()
