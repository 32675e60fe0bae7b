"""A strategy that connects by itself is seen like one after `wb.connect`: clusters are announced where they open."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOK = """
import json
from workbench.runtime.deploy.registry import Registry
if __name__ == "__main__":
    import workbench as wb
    made = {make}
    print(json.dumps([[entry.name, entry.pid] for entry in Registry().entries()]))
    wb.current_cluster().close()
    print(json.dumps([entry.name for entry in Registry().entries()]))
"""
OPENINGS = {
    "mirrored": "wb.MirroredStrategy()",
    "mirrored over devices": "wb.MirroredStrategy(['CPU:0', 'CPU:1'])",
    "mirrored by its full name": "wb.distribute.MirroredStrategy()",
    "multi-worker": "wb.MultiWorkerMirroredStrategy()",
    "one device": "wb.OneDeviceStrategy('CPU:0')",
    "central storage": "wb.distribute.experimental.CentralStorageStrategy()",
    "connect": "wb.connect(replicas=1)",
    "connect, by its module": "__import__('workbench.runtime.connect_cluster', fromlist=['_']).connect(replicas=1)",
    "a part of the package": "__import__('workbench.distribute.strategies.mirrored', fromlist='_').MirroredStrategy()",
    "TPU": "(__import__('workbench.runtime.connect_cluster', fromlist=['_']).connect(tpu=2), wb.TPUStrategy())",
}


@pytest.mark.parametrize("make", OPENINGS.values(), ids=OPENINGS)
def test_a_script_is_seen_however_its_cluster_is_opened(make: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOK.format(make=make), encoding="utf-8")
    environment = os.environ | {"WORKBENCH_RUNTIME_DIR": str(tmp_path / "registry")}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=environment) as process:
        out, _ = process.communicate(timeout=100)
    assert process.returncode == 0
    seen, after = map(json.loads, out.decode().splitlines()[-2:])
    assert seen == [["train.py", process.pid]]
    assert after == []
