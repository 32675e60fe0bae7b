"""Programs of several workers: `python -m tests.differential.cases.tensorflow.workers INPUTS OUTCOMES WORKER`.

Each worker is a process with the same programs, which it runs in the same order: collectives wait for the others. A
strategy of several workers can be made once in a process, so that all programs have the same one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import tensorflow as tf

from tests.differential.cases.tensorflow.notation import component, described, encode
from tests.differential.cases.tensorflow.pipelines import build
from tests.differential.cases.tensorflow.ports import free_port
from tests.differential.cases.tensorflow.programs import left_by, strategy_names
from tests.reference.interpreter.codec import Json

WORKERS = 2
_SECONDS = 600


def of_all_workers(cases: list[Json]) -> list[Json]:
    """What each program came to in each worker."""
    addresses = [f"localhost:{free_port()}" for _ in range(WORKERS)]
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder, "inputs")
        inputs.write_text(json.dumps(cases))
        found = [Path(folder, f"{worker}") for worker in range(WORKERS)]
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", __spec__.name, inputs, found[worker], str(worker)],
                env=os.environ | {"TF_CONFIG": _task(addresses, worker)},
            )
            for worker in range(WORKERS)
        ]
        try:
            for process in processes:
                process.wait(_SECONDS)
        finally:
            for process in processes:
                process.kill()
        outcomes = [json.loads(each.read_text()) for each in found]
    return [{"workers": list(each)} for each in zip(*outcomes, strict=True)]


def _task(addresses: list[str], worker: int) -> str:
    return json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": worker}})


def _outcome(given: Json, strategy: Any, worker: int) -> Json:
    def steps(dataset: Any, limit: int | None = None) -> Any:
        return _Steps([[component(step, 0)] for step in islice(dataset, limit)])

    names = {**strategy_names(strategy), "worker": worker, "pipeline": build, "steps": steps}
    try:
        result = left_by(given, names)
        return {"steps": list(result)} if isinstance(result, _Steps) else {"result": encode(result)}
    except Exception as error:
        return described(error)


class _Steps(list[Any]):
    """What the worker's replica got, step by step, in the form of the vectors."""


if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    of_workers = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
    programs = json.loads(Path(sys.argv[1]).read_text())
    outcomes = [_outcome(given, of_workers, int(sys.argv[3])) for given in programs]
    Path(sys.argv[2]).write_text(json.dumps(outcomes))
