"""Runs the inputs of a file, and writes what each came to."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tensorflow as tf

from tests.differential.cases.tensorflow.kinds import KINDS
from tests.differential.cases.tensorflow.notation import described
from tests.differential.cases.tensorflow.workers import of_all_workers
from tests.reference.interpreter.codec import Json


def _outcome(given: Json) -> Json:
    tf.compat.v1.reset_default_graph()  # it knows the strategy that an earlier program has set
    try:
        return KINDS[given["kind"]](given)
    except Exception as error:
        return described(error)


if __name__ == "__main__":
    cases = json.loads(Path(sys.argv[1]).read_text())
    if cases[0]["kind"] == "multi_worker_program":  # all tests of an area or none
        Path(sys.argv[2]).write_text(json.dumps(of_all_workers(cases)))
        sys.exit()
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
    tf.get_logger().setLevel("ERROR")
    Path(sys.argv[2]).write_text(json.dumps([_outcome(given) for given in cases]))
