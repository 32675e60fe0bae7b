"""The interpreters that benchmarks run in: ours, and those that have the peers installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass

INSTALL = {
    "peers": "python -m venv peers && peers/bin/pip install torch jax ipyparallel mpi4py grain google-crc32c "
    "treescope 'dask[distributed]' bokeh jupyterlab-nvdashboard tensorboard torchmonarch playwright   "
    "(mpi4py needs OpenMPI: apt-get install openmpi-bin libopenmpi-dev); then --peers peers/bin/python",
    "tensorflow": "python -m venv peers-tf && peers-tf/bin/pip install tensorflow-cpu; then --tensorflow "
    "peers-tf/bin/python",
}
_SHOWN = (
    "numpy dask distributed ipyparallel mpi4py torch jax tensorflow tensorflow-cpu pyarrow optree "
    "bokeh panel treescope jupyterlab jupyterlab-nvdashboard "
    "tensorboard torchmonarch jupyter_client playwright grain google-crc32c".split()
)
_VERSIONS = """
import json, platform, sys
from importlib import metadata
found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try: found[name] = metadata.version(name)
    except metadata.PackageNotFoundError: pass
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """An interpreter with libraries.

    Attributes:
      python: The interpreter, or "" if there is none.
      versions: The versions of the libraries that matter here, by name of the distribution.
    """

    python: str
    versions: dict[str, str]

    @classmethod
    def of(cls, python: str) -> Environment:
        """Asks the interpreter what it has; `python` may be ""."""
        if not python:
            return cls("", {})
        asked = subprocess.run(
            [python, "-c", _VERSIONS, *_SHOWN], capture_output=True, text=True, check=True, timeout=60
        )
        return cls(python, json.loads(asked.stdout))

    def lacks(self, needs: tuple[str, ...]) -> str:
        """What of `needs` is missing, in words, or ""; "mpirun" is a program, everything else a distribution."""
        if not self.python:
            return "no interpreter given"
        missing = [
            name
            for name in needs
            if name not in self.versions and not (name == "mpirun" and shutil.which(name))
        ]
        return f"not installed: {', '.join(missing)}" if missing else ""


def environments(peers: str, tensorflow: str) -> dict[str, Environment]:
    """The three environments by name: "ours" is the one that runs this."""
    return {
        "ours": Environment.of(sys.executable),
        "peers": Environment.of(peers),
        "tensorflow": Environment.of(tensorflow),
    }
