"""A replica that is killed takes no record of a completed collective along, and all say alike where it was."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import ReplicaLost

STEPS = 25


def two_collectives(x: np.ndarray) -> None:
    context: Any = wb.distribute.get_replica_context()
    context.all_reduce("mean", x)
    context.all_reduce("sum", x)


@pytest.mark.parametrize("where", ["before the second", "in the second"])
def test_completed_steps_stay_and_error_banner_and_diagnosis_agree(where: str) -> None:
    def killed_before(x: np.ndarray) -> None:
        context: Any = wb.distribute.get_replica_context()
        context.all_reduce("mean", x)
        if context.replica_id_in_sync_group == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        context.all_reduce("sum", x)

    rules = [{"point": "all_reduce.enter", "replica": 1, "nth": 2 * STEPS + 2, "action": "kill"}]
    environment = {} if where.startswith("before") else {"WB_FAULTS": json.dumps(rules)}
    with wb.connect(replicas=3, environment=environment) as cluster:
        strategy = wb.MirroredStrategy()
        args = (np.ones(4, np.float32),)
        for _ in range(STEPS):
            strategy.run(two_collectives, args=args)
        with pytest.raises(ReplicaLost) as caught:
            strategy.run(killed_before if where.startswith("before") else two_collectives, args=args)
        text = str(caught.value)
        cluster.flush_telemetry()
        records = cluster.feed.to_arrow().to_pylist()
        stuck = cluster.feed.snapshot().groups[0].stuck
        verdict = repr(wb.diagnose())

    rows = Counter(
        (row["replica"], row["step"]) for row in records if row["state"] == "ok" and not row["purpose"]
    )
    done = {key: count for key, count in rows.items() if 0 <= key[1] < STEPS}
    assert done == {(replica, step): 2 for replica in range(3) for step in range(STEPS)}
    assert rows[1, STEPS] == 1  # what it completed of the step in which it was killed
    assert stuck is not None
    assert (stuck.state, stuck.missing, stuck.step, stuck.seq) == ("lost", (1,), STEPS, 1)
    reached = f"while in {stuck.op} #{stuck.seq + 1}" in text
    assert reached == (stuck.reached == (1,))
    assert reached == where.startswith("in")
    if not reached:
        assert "before it came to all_reduce #2" in text
    assert re.search(r"released from all_reduce #2 \(test_last_records\.py:\d+\)", text)
    assert f"step {STEPS} failed: replica 1 was lost" in verdict
    assert "replica 1 is in" not in verdict
