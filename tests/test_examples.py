"""The examples in the docstrings of public names run and give what they show, all of them on one cluster."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb

ROOT = Path(__file__).parents[1]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FIRST_MET = """
    MirroredStrategy OneDeviceStrategy MultiWorkerMirroredStrategy connect Variable Checkpoint CheckpointManager
    latest_checkpoint inspect explain_sharding overview diagnose record open_run runs report function IndexedSlices
    distribute.Strategy.run distribute.Strategy.reduce distribute.Strategy.gather distribute.Strategy.scope
    distribute.Strategy.local_results distribute.Strategy.distribute_dataset distribute.get_replica_context
    distribute.ReplicaContext.all_reduce distribute.ReplicaContext.all_gather distribute.ReplicaContext.merge_call
    distribute.experimental.CentralStorageStrategy distribute.ParameterServerStrategy
    distribute.coordinator.ClusterCoordinator distribute.coordinator.ClusterCoordinator.schedule
    data.Dataset.from_tensor_slices data.Dataset.map data.Dataset.batch data.Dataset.shuffle data.Dataset.prefetch
    data.Dataset.interleave data.Dataset.filter data.Dataset.repeat data.Dataset.cache data.Dataset.padded_batch
    data.TFRecordDataset data.Options io.TFRecordWriter io.parse_example nn.embedding_lookup
    debugging.check_numerics debugging.enable_check_numerics debugging.assert_equal debugging.assert_shapes
    testing.trace testing.assert_collectives testing.assert_sharding testing.assert_finite
""".split()
"""What users meet first: each of these has an example."""


def public() -> Iterator[tuple[str, Any]]:
    """The names that the reference describes with what they stand for, and the methods of classes among them."""
    pages = sorted((ROOT / "notebooks" / "guide" / "reference").glob("wb*.md"))
    for package in re.findall(
        r"{namespace} (\S+)", "".join(page.read_text(encoding="utf-8") for page in pages)
    ):
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            yield f"{package}.{name}", value
            if isinstance(value, type):
                for method, _ in inspect.getmembers(value, inspect.isroutine):
                    if not method.startswith("_"):
                        yield f"{package}.{name}.{method}", getattr(value, method)


def examples() -> dict[str, doctest.DocTest]:
    """By one of its names, the examples of each docstring that has some which run."""
    parser, found, seen = doctest.DocTestParser(), {}, set()
    for name, value in public():
        text = inspect.getdoc(value) or ""
        of_ours = str(getattr(value, "__module__", "")).startswith("workbench")  # other tests run theirs
        if ">>>" not in text or text in seen or not of_ours:
            continue
        seen.add(text)
        test = parser.get_doctest(text, {}, name, None, None)
        if any(doctest.SKIP not in example.options for example in test.examples):
            found[name] = test
    return found


EXAMPLES = examples()


@pytest.fixture(scope="module")
def strategy() -> Iterator[wb.MirroredStrategy]:
    with wb.connect(replicas=2, processes=False):
        yield wb.MirroredStrategy()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_hold(
    name: str, strategy: wb.MirroredStrategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    test = EXAMPLES[name]
    test.globs = {"__name__": "__main__", "np": np, "os": os, "wb": wb, "strategy": strategy}
    told: list[str] = []

    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=told.append)

    assert "".join(told) == ""


@pytest.mark.parametrize("name", FIRST_MET)
def test_what_users_meet_first_has_an_example(name: str) -> None:
    value: Any = wb
    for part in name.split("."):
        value = getattr(value, part)
    runs = re.findall(r"^\s*>>> (?!.*\+SKIP)", inspect.getdoc(value) or "", re.MULTILINE)

    assert runs
