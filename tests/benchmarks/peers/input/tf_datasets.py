"""tf.data on everything that the suite "input" measures in one process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

from tests.benchmarks import input_cases as cases
from tests.benchmarks.measure import Script
from tests.benchmarks.python_work import work

_IMAGES = np.random.default_rng(0).integers(0, 256, (cases.EXAMPLES, 784), dtype=np.uint8)
_FEATURES = {
    "floats": {"x": tf.io.FixedLenFeature((784,), tf.float32), "y": tf.io.FixedLenFeature((), tf.int64)},
    "images": {"x": tf.io.FixedLenFeature((), tf.string), "y": tf.io.FixedLenFeature((), tf.int64)},
    "scalars": {
        **{f"i{n}": tf.io.FixedLenFeature((), tf.int64) for n in range(13)},
        **{f"f{n}": tf.io.FixedLenFeature((), tf.float32) for n in range(13)},
    },
}


def _slow(number: Any) -> Any:
    time.sleep(cases.SLOW_SECONDS)
    return number


def _in_python(function: Any) -> Any:
    """Wraps a Python function so that tf.data accepts it as a map."""

    def called(x: Any) -> Any:
        return tf.numpy_function(function, [x], tf.int64, stateful=False)

    return called


def _consumed(dataset: Any) -> Iterable[Any]:
    for element in dataset:
        time.sleep(cases.SLOW_SECONDS)
        yield element


def _parsed(kind: str) -> Iterable[Any]:
    """Repeatedly parses batches of in-memory examples by a compiled function."""
    batches = list(tf.data.TFRecordDataset(cases.file(f"{kind}.examples")).batch(cases.PARSED_BATCH))
    parse = tf.function(lambda serialized: tf.io.parse_example(serialized, _FEATURES[kind]))
    while True:
        for batch in batches:
            yield parse(batch)


def _in_memory() -> list[tuple[str, str, int, str, Any]]:
    numbers = tf.data.Dataset.range(cases.NUMBERS)
    shuffled = numbers.shuffle(10_000).batch(cases.BATCH, drop_remainder=True).map(lambda x: x * 2 + 1)
    mapped = numbers.map(lambda x: x * 2 + 1).batch(cases.BATCH, drop_remainder=True)
    images = tf.data.Dataset.from_tensor_slices(_IMAGES)
    return [
        ("tf.data", cases.RANGE, cases.BATCH, "elements/s", lambda: shuffled),
        ("tf.data", cases.RANGE_MAP, cases.BATCH, "elements/s", lambda: mapped),
        (
            "tf.data",
            cases.SHUFFLED,
            cases.BATCH,
            "examples/s",
            lambda: images.shuffle(cases.EXAMPLES).batch(cases.BATCH, drop_remainder=True),
        ),
        (
            "tf.data",
            cases.SMALL_BUFFER,
            cases.BATCH,
            "examples/s",
            lambda: images.shuffle(10_000).batch(cases.BATCH, drop_remainder=True),
        ),
    ]


def _from_files() -> list[tuple[str, str, int, str, Any]]:
    text, paths = cases.file("lines.txt"), cases.record_files()

    def interleaved() -> Any:
        files = tf.data.Dataset.from_tensor_slices(paths)
        records = files.interleave(
            tf.data.TFRecordDataset,
            cycle_length=8,
            block_length=128,
            num_parallel_calls=2,
            deterministic=False,
        )
        return records.batch(cases.BATCH).prefetch(2)

    return [
        ("tf.data", cases.LINES, 1024, "lines/s", lambda: tf.data.TextLineDataset(text).batch(1024, True)),
        ("tf.data", cases.LINES_SINGLE, 1, "lines/s", lambda: tf.data.TextLineDataset(text)),
        (
            "tf.data",
            cases.RECORDS,
            cases.BATCH,
            "records/s",
            lambda: tf.data.TFRecordDataset(paths).batch(cases.BATCH),
        ),
        ("tf.data, interleaved", cases.RECORDS, cases.BATCH, "records/s", interleaved),
        ("tf.data", cases.RECORDS_SINGLE, 1, "records/s", lambda: tf.data.TFRecordDataset(paths)),
    ]


def _ahead() -> list[tuple[str, str, int, str, Any]]:
    numbers = tf.data.Dataset.range(cases.NUMBERS)
    slow, busy = _in_python(_slow), _in_python(work)
    return [
        ("tf.data", cases.AHEAD, 1, "elements/s", lambda: _consumed(numbers.map(slow).prefetch(4))),
        (
            "tf.data",
            cases.SOURCES,
            1,
            "elements/s",
            lambda: tf.data.Dataset.range(8).interleave(
                lambda _: numbers.map(slow), cycle_length=8, num_parallel_calls=8
            ),
        ),
        ("tf.data", cases.PARALLEL, 1, "elements/s", lambda: numbers.map(slow, num_parallel_calls=8)),
        ("tf.data", cases.PYTHON_BOUND, 1, "elements/s", lambda: numbers.map(busy, num_parallel_calls=2)),
    ]


def main() -> None:
    """Measures all cases."""
    script = Script("input", __doc__)
    tf.get_logger().setLevel("ERROR")
    for who, what, per_item, unit, make in (*_in_memory(), *_from_files()):
        cases.measure_rate(script, who, what, make, per_item=per_item, unit=unit)
    for who, what, per_item, unit, make in _ahead():
        cases.measure_rate(script, who, what, make, per_item=per_item, unit=unit, skip=cases.STARTED)
    cases.measure_first(
        script,
        "tf.data",
        lambda: tf.data.Dataset.from_tensor_slices(_IMAGES).shuffle(cases.EXAMPLES).batch(cases.BATCH),
    )
    for what, kind in cases.PARSED.items():
        examples = _parsed(kind)
        next(iter(examples))  # reads the file and compiles
        cases.measure_rate(
            script,
            "tf.io.parse_example",
            what,
            lambda examples=examples: examples,  # type: ignore[misc]
            per_item=cases.PARSED_BATCH,
            unit="examples/s",
        )


if __name__ == "__main__":
    main()
