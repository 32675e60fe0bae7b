"""Ids are told apart, also by processes that were forked off one that gives some; strategies are found by theirs."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import workbench as wb
from workbench.distribute.identity import new_id


def test_no_id_comes_twice() -> None:
    assert len({new_id() for _ in range(1000)}) == 1000


def test_forks_of_one_process_give_different_ids() -> None:
    with wb.connect(replicas=2):
        strategy = wb.MirroredStrategy()
        given = strategy.local_results(strategy.run(lambda: [new_id() for _ in range(10)]))

    assert len({id for ids in given for id in ids}) == 20


def test_replicas_of_one_process_see_one_strategy_however_often_it_arrives() -> None:
    with wb.connect(replicas=2, replicas_per_worker=2):
        strategy = wb.MirroredStrategy()
        travelling = pickle.dumps(strategy)

        def arrivals() -> Any:
            with ThreadPoolExecutor(8) as pool:
                arrived = list(pool.map(pickle.loads, [travelling] * 64))
            return len({id(each) for each in arrived})

        assert strategy.local_results(strategy.run(arrivals)) == (1, 1)
        assert pickle.loads(travelling) is strategy
