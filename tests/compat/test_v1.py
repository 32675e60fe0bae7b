"""Programs for the strategies of TensorFlow 1.15 run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.compat.v1 import distribute

pytestmark = pytest.mark.filterwarnings("ignore:.* is a spelling of TensorFlow 1:DeprecationWarning")


@pytest.fixture
def strategy(cluster: wb.Cluster) -> distribute.MirroredStrategy:
    return distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def test_an_input_iterator_gives_parts_of_batches_and_begins_again(
    strategy: distribute.MirroredStrategy,
) -> None:
    iterator = strategy.make_dataset_iterator(wb.data.Dataset.range(4).batch(4))

    for _ in range(2):
        iterator.initialize()
        sums = strategy.experimental_run(lambda x: x.sum(), iterator)
        assert [int(x) for x in strategy.experimental_local_results(sums)] == [1, 5]
        with pytest.raises(wb.errors.OutOfRangeError):
            strategy.experimental_run(lambda x: x.sum(), iterator)


def test_an_input_function_is_called_per_host(strategy: distribute.MirroredStrategy) -> None:
    iterator = strategy.make_input_fn_iterator(lambda context: wb.data.Dataset.range(4).batch(2))

    assert [list(map(int, x)) for x in strategy.local_results(iterator.get_next())] == [[0, 1], [2, 3]]
    with pytest.raises(wb.errors.InvalidArgumentError, match="once per host"):
        strategy.make_input_fn_iterator(
            lambda context: wb.data.Dataset.range(4), wb.distribute.InputReplicationMode.PER_REPLICA
        )


def test_options_of_a_run_have_the_order_of_the_reference() -> None:
    options = wb.distribute.RunOptions(False, True, "xla")
    assert options.experimental_enable_dynamic_batch_size is False
    assert (options.experimental_bucketizing_dynamic_shape, options.experimental_xla_options) == (True, "xla")
    assert options.partial_batch == "recompile"


@pytest.mark.parametrize("known", [True, False])
def test_an_input_function_gives_whole_steps(strategy: distribute.MirroredStrategy, known: bool) -> None:
    def dataset(context: Any) -> Any:
        made = wb.data.Dataset.range(7).batch(3)
        return made if known else made.filter(lambda batch: True)

    iterator = strategy.make_input_fn_iterator(dataset)
    for _ in range(2):
        iterator.initialize()
        assert [[x.tolist() for x in strategy.local_results(step)] for step in iterator] == [
            [[0, 1, 2], [3, 4, 5]]
        ]


def test_experimental_run_v2_warns_once_at_the_users_line(strategy: distribute.MirroredStrategy) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            strategy.experimental_run_v2(lambda x: x, args=(np.ones(2),))

    assert [str(warning.message) for warning in told] == [
        "experimental_run_v2(fn, args) is a spelling of TensorFlow 1; write strategy.run(fn, args)"
    ]
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    "make",
    [
        lambda: distribute.OneDeviceStrategy("CPU:0"),
        lambda: distribute.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"]),
        lambda: distribute.experimental.MultiWorkerMirroredStrategy(),
    ],
)
def test_every_strategy_has_the_older_methods(cluster: wb.Cluster, make: object) -> None:
    strategy = make()  # type: ignore[operator]
    with strategy.scope():
        v = wb.Variable(1.0, aggregation="SUM")
    strategy.experimental_run_v2(lambda: v.assign_add(np.float32(1.0)))

    assert float(v) == 1.0 + strategy.num_replicas_in_sync
    assert isinstance(strategy, distribute.Strategy)


@pytest.fixture
def served(cluster: wb.Cluster) -> Iterator[distribute.experimental.ParameterServerStrategy]:
    made = distribute.experimental.ParameterServerStrategy()
    yield made
    made.close()


def test_a_program_for_parameter_servers_trains(
    served: distribute.experimental.ParameterServerStrategy,
) -> None:
    iterator = served.make_dataset_iterator(wb.data.Dataset.range(4).batch(2))
    with served.scope():
        total = wb.Variable(0, name="total")

    def step(x: Any) -> int:
        total.assign_add(x.sum())
        return int(x.sum())

    for _ in range(2):
        iterator.initialize()
        assert [
            int(served.reduce("SUM", served.experimental_run(step, iterator), axis=None)) for _ in range(2)
        ] == [1, 5]
        with pytest.raises(wb.errors.OutOfRangeError):
            served.experimental_run(step, iterator)
    served.experimental_run_v2(step, args=(np.array([10]),))

    assert int(total) == 22
    assert (served.num_replicas_in_sync, total.device) == (1, "/job:ps/replica:0/task:0/device:CPU:0")
    assert isinstance(served, distribute.Strategy)


def test_its_inputs_come_from_functions_too_and_its_workers_run_what_a_coordinator_schedules(
    served: distribute.experimental.ParameterServerStrategy,
) -> None:
    iterator = served.make_input_fn_iterator(
        lambda context: wb.data.Dataset.range(4).batch(4 // context.num_input_pipelines)
    )
    assert list(iterator.get_next()) == [0, 1, 2, 3]
    with served.scope():
        count = wb.Variable(0, name="count")
    coordinator = wb.distribute.coordinator.ClusterCoordinator(served)

    for _ in range(10):
        coordinator.schedule(lambda: count.assign_add(1))
    coordinator.join()

    assert int(count) == 10


def test_it_divides_no_variables_and_takes_a_resolver(cluster: wb.Cluster) -> None:
    spec = wb.distribute.ClusterSpec({"worker": ["a:1"], "ps": ["b:1"]})
    resolver = wb.distribute.cluster_resolver.SimpleClusterResolver(spec)
    strategy = distribute.experimental.ParameterServerStrategy(resolver)
    try:
        with strategy.scope():
            v = wb.Variable(np.zeros((8, 2)))
        assert strategy.cluster_resolver is resolver
        assert v.shape == (8, 2)
        assert len(strategy.variables) == 1
    finally:
        strategy.close()
    with pytest.raises(TypeError, match="variable_partitioner"):
        distribute.experimental.ParameterServerStrategy(resolver, variable_partitioner=None)  # type: ignore[call-arg]


@pytest.fixture
def emulated() -> Iterator[wb.Cluster]:
    pytest.importorskip("jax", reason="JAX is not installed: pip install -e '.[jax]'")
    with wb.connect(tpu=2, replace=True) as cluster:
        yield cluster


def test_a_tpu_strategy_knows_its_steps_per_run(emulated: wb.Cluster) -> None:
    strategy = distribute.experimental.TPUStrategy(steps_per_run=20)
    doubled = strategy.experimental_run_v2(lambda x: x * 2, args=(np.float32(3),))

    assert strategy.steps_per_run == 20
    assert [float(x) for x in strategy.local_results(doubled)] == [6.0, 6.0]
    with pytest.raises(
        wb.errors.InvalidArgumentError, match="steps_per_run must be an integer of at least 1, got 0"
    ):
        distribute.experimental.TPUStrategy(steps_per_run=0)


def test_reduce_takes_no_axis_for_none(strategy: distribute.MirroredStrategy) -> None:
    values = strategy.run(lambda: 2.0)

    assert strategy.reduce("SUM", values) == strategy.reduce("SUM", values, None)  # type: ignore[call-arg]


def test_the_deprecated_methods_of_strategies(strategy: distribute.MirroredStrategy) -> None:
    with strategy.scope():
        v = wb.Variable(1.0)
        with strategy.colocate_vars_with(v):
            w = wb.Variable(2.0)
    strategy.configure(session_config=None)
    assert [part.device for part in strategy.unwrap(w)] == [part.device for part in strategy.unwrap(v)]


def test_the_names_of_the_module() -> None:
    assert distribute.cluster_resolver.SimpleClusterResolver is (
        wb.distribute.cluster_resolver.SimpleClusterResolver
    )
    assert distribute.InputReplicationMode is wb.distribute.InputReplicationMode
    assert distribute.RunOptions is wb.distribute.RunOptions
    assert distribute.experimental.CommunicationOptions(bytes_per_pack=1).bytes_per_pack == 1
    assert distribute.experimental.CommunicationImplementation.AUTO.name == "AUTO"
