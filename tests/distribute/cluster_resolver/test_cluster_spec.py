"""ClusterSpec: jobs, tasks, addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb

ClusterSpec = wb.distribute.ClusterSpec


def test_texts_of_numpy_are_texts() -> None:
    spec = wb.distribute.ClusterSpec({np.str_("worker"): [np.str_("a:1")]})
    assert repr(spec) == "ClusterSpec({'worker': ['a:1']})"
    assert spec == wb.distribute.ClusterSpec(spec) == {"worker": {0: "a:1"}}


def test_a_cluster_answers_by_job_and_number() -> None:
    spec = ClusterSpec({"chief": ["a:1"], "worker": {3: "d:1", 1: "b:1"}})

    assert spec.jobs == ["chief", "worker"]
    assert spec.as_dict() == {"chief": ["a:1"], "worker": {1: "b:1", 3: "d:1"}}
    assert spec.num_tasks("worker") == 2
    assert spec.task_indices("worker") == [1, 3]
    assert spec.task_address("worker", 3) == "d:1"
    assert spec.job_tasks("worker") == [None, "b:1", None, "d:1"]
    assert repr(spec) == "ClusterSpec({'chief': ['a:1'], 'worker': {1: 'b:1', 3: 'd:1'}})"


def test_numbers_without_gaps_are_a_list() -> None:
    assert ClusterSpec({"worker": {1: "b", 0: "a"}}).as_dict() == {"worker": ["a", "b"]}
    assert ClusterSpec({"worker": []}).as_dict() == {"worker": {}}  # as in TensorFlow
    assert ClusterSpec({"worker": ["a", "b"]}) == ClusterSpec({"worker": {0: "a", 1: "b"}})
    assert len({ClusterSpec({"worker": ["a"]}), ClusterSpec({"worker": {0: "a"}})}) == 1


def test_a_spec_equals_numbered_tasks_and_specs_whose_jobs_have_another_order() -> None:
    spec, turned = ClusterSpec({"worker": ["a"], "ps": ["b"]}), ClusterSpec({"ps": ["b"], "worker": ["a"]})

    assert (spec == turned, hash(spec) == hash(turned)) == (True, True)
    assert repr(spec) == repr(turned) == "ClusterSpec({'ps': ['b'], 'worker': ['a']})"
    assert spec == {"ps": {0: "b"}, "worker": {0: "a"}}
    assert spec != spec.as_dict()  # as in TensorFlow
    assert spec != 5


def test_a_spec_is_independent_of_what_it_was_made_of() -> None:
    given = {"worker": ["a"]}
    spec = ClusterSpec(given)
    given["worker"].append("b")
    spec.as_dict()["worker"] = []

    assert ClusterSpec(spec) == spec
    assert spec.num_tasks("worker") == 1


def test_what_is_not_there_is_named_with_what_is() -> None:
    spec = ClusterSpec({"worker": ["a"]})

    with pytest.raises(ValueError, match=r"no job 'ps': it has \['worker'\]"):
        spec.job_tasks("ps")
    with pytest.raises(ValueError, match=r"job 'worker' has no task 4: it has \[0\]"):
        spec.task_address("worker", 4)
    assert not ClusterSpec({})


def test_numbers_of_tasks_may_be_texts_as_in_json() -> None:
    assert ClusterSpec({"worker": {"10": "b:1", "3": "a:1"}}).as_dict() == {"worker": {3: "a:1", 10: "b:1"}}


@pytest.mark.parametrize(
    ("tasks", "shown"), [({"1": "a:1", 1: "b:1"}, "'1' and 1"), ({"01": "a:1", "1": "b:1"}, "'01' and '1'")]
)
def test_a_task_that_is_given_twice_is_refused(tasks: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=f"^job 'worker' has task 1 twice, as {shown}; give each task once$"):
        ClusterSpec({"worker": tasks})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["a:1"], "a cluster is a dict from job to addresses, got list"),
        ({"worker": "a:1"}, r"takes a list of addresses .* write \['a:1'\]"),
        ({"worker": [1]}, "the address of task 0 of job 'worker' is a text, got int"),
        ({"worker": {1.5: "a"}}, "tasks have whole numbers from 0, got 1.5"),
        ({"worker": {True: "a"}}, "tasks have whole numbers from 0, got True"),
        ({1: ["a"]}, "the name of a job is a text, got int"),
    ],
)
def test_anything_else_is_refused(given: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        ClusterSpec(given)


@pytest.mark.parametrize("number", ["x", -1, "-1", 2**31])
def test_numbers_that_no_task_can_have_are_refused(number: Any) -> None:
    with pytest.raises(ValueError, match="tasks have whole numbers from 0 to 2,147,483,647, got"):
        ClusterSpec({"worker": {number: "a"}})
