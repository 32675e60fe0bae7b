"""A script needs no `if __name__ == "__main__":`, and is run once."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import dataclasses
import workbench as wb

print("the script runs")

@dataclasses.dataclass
class Pair:
    first: int
    second: int

def swapped(pair):
    return Pair(pair.second, pair.first)

with wb.connect(replicas=2):
    strategy = wb.MirroredStrategy()
    print(strategy.local_results(strategy.run(swapped, args=(Pair(1, 2),))))
"""


def test_a_script_without_a_guard_runs_once_and_its_classes_travel(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    pair = "Pair(first=2, second=1)"
    assert done.stdout.splitlines() == ["the script runs", f"({pair}, {pair})"]


def test_other_processes_of_the_user_still_import_the_script(tmp_path: Path) -> None:
    script = tmp_path / "other.py"
    script.write_text(
        "import multiprocessing\n"
        "from workbench.runtime.main_module import leave_main_out\n"
        "def task(): print('found')\n"
        "if __name__ == '__main__':\n"
        "    leave_main_out()\n"
        "    process = multiprocessing.get_context('spawn').Process(target=task)\n"
        "    process.start()\n"
        "    process.join(60)\n"
    )
    assert "spawn" in multiprocessing.get_all_start_methods()
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.stdout == "found\n", done.stderr
