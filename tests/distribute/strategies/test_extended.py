"""What libraries ask `strategy.extended`: functions on some of its devices, and what kind of program this is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.distribute import Mirrored, get_replica_context
from workbench.distribute.experimental import CentralStorageStrategy
from workbench.errors import InvalidArgumentError


def _where(own: Any) -> tuple[Any, bool]:
    return own, get_replica_context() is None


def test_a_function_of_no_slot_runs_on_the_devices_that_are_named(cluster: Any) -> None:
    strategy = wb.MirroredStrategy()
    own = strategy.distribute_values_from_function(lambda context: context.replica_id_in_sync_group)
    with strategy.scope():
        v = wb.Variable(0.0)

    def on(devices: Any, group: bool = False) -> Any:
        return strategy.extended.update_non_slot(devices, _where, args=(own,), group=group)

    all_of_them = ((0, 1), (True, True))
    for everywhere in (None, [], v, own, strategy.extended.non_slot_devices([v]), ("CPU:1", "CPU:0")):
        assert on(everywhere) == all_of_them
    component = strategy.local_results(v)[1]
    for second in (("CPU:1",), "CPU:1", wb.DeviceSpec(device_type="CPU", device_index=1), component):
        assert on(second) == ((1,), (True,))
    assert on(["CPU:1"], group=True) == (1, True)
    with pytest.raises(InvalidArgumentError, match="CPU:7"):
        on(["CPU:7"])
    strategy.group.close()


def test_a_part_of_the_devices_gives_a_value_with_these_components(threads: Any) -> None:
    strategy = wb.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    own = strategy.distribute_values_from_function(lambda context: context.replica_id_in_sync_group)
    made = strategy.extended.update_non_slot(("CPU:2", "CPU:0"), _where, args=(own,))
    assert isinstance(made[0], Mirrored)
    assert made[0].values == (0, 2)
    strategy.group.close()


def test_one_component_is_where_it_is(threads: Any) -> None:
    central = CentralStorageStrategy(["CPU:0", "CPU:1"])
    assert central.extended.update_non_slot("CPU:1", lambda: 1, group=False) == (1,)
    central.group.close()


def test_there_is_one_program(local: Any) -> None:
    extended = local.extended
    asked = (extended.experimental_between_graph, extended.experimental_require_static_shapes)
    assert asked == (False, False)
    assert extended.experimental_should_init
    assert extended.should_checkpoint
    assert extended.should_save_summary


def test_arrays_become_a_dataset(local: Any) -> None:
    dataset = local.extended.experimental_make_numpy_dataset((np.arange(3), np.arange(3.0)), None)
    assert [(int(a), float(b)) for a, b in dataset] == [(0, 0.0), (1, 1.0), (2, 2.0)]


def test_the_elements_of_a_distributed_dataset_are_folded(local: Any) -> None:
    distributed = local.distribute_dataset(wb.data.Dataset.range(6).batch(4))
    assert int(distributed.reduce(0, lambda total, x: total + local.reduce("SUM", x, axis=0))) == 15
