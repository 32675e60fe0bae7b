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


_CHILD = """
import multiprocessing
import workbench as wb

class Unlucky(Exception):
    pass

class Scale:
    by = 3

def scaled(x, scale):
    if x > 1:
        raise Unlucky(scale.by)
    return x * scale.by

def train():
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy()
        print(strategy.local_results(strategy.run(scaled, args=(1, Scale()))))
        try:
            strategy.run(scaled, args=(2, Scale()))
        except Unlucky as error:
            print("unlucky on replica", error.replica)

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=train)
    process.start()
    process.join(90)
"""


def _output(script: Path) -> str:
    """The output of a script."""
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_without_a_guard_runs_once_and_its_classes_travel(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(_SCRIPT)
    pair = "Pair(first=2, second=1)"
    assert _output(script).splitlines() == ["the script runs", f"({pair}, {pair})"]


def test_a_script_that_is_a_spawned_child_runs_its_functions_on_replicas(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(_CHILD)
    assert _output(script).splitlines() == ["(3, 3)", "unlucky on replica 0"]


def test_other_processes_of_the_user_still_import_the_script(tmp_path: Path) -> None:
    script = tmp_path / "other.py"
    script.write_text(
        "import multiprocessing\n"
        "from workbench.runtime.shipping.main_module import leave_main_out\n"
        "def task(): print('found')\n"
        "if __name__ == '__main__':\n"
        "    leave_main_out()\n"
        "    process = multiprocessing.get_context('spawn').Process(target=task)\n"
        "    process.start()\n"
        "    process.join(60)\n"
    )
    assert "spawn" in multiprocessing.get_all_start_methods()
    assert _output(script) == "found\n"
