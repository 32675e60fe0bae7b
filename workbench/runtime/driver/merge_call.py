"""Merge calls: replicas pause, the driver runs a function in cross-replica context and distributes the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optree

from workbench.errors import CaptureError, CollectiveMismatch
from workbench.runtime.comm.messages import MERGED, Ref
from workbench.runtime.comm.result_leaves import arrived
from workbench.runtime.driver.arguments import explain_unpicklable_result
from workbench.runtime.driver.handle import Handle
from workbench.runtime.driver.step import Step


class PerRank:
    """A leaf of a merge function's result that differs by replica.

    Attributes:
      components: One per rank.
    """

    __slots__ = ("components",)

    def __init__(self, components: Sequence[Any]) -> None:
        self.components = components


def run_merge(step: Step) -> None:
    """Runs the merge function that all replicas of `step` wait for, and lets them continue."""
    requests, step.merging = step.merging, {}
    group = step.group
    codec = group.gang.shipping.codec
    try:
        bodies = {
            rank: codec.decode(body, f"the merge_call of replica {rank}")
            for rank, (body, _) in requests.items()
        }
    except CaptureError as error:
        step.merging = requests
        refuse_merge(step, str(error))
        step.merge_error = error
        return
    if why := _objection(step, bodies):
        step.merging = requests
        refuse_merge(step, why)
        return
    fn, spec, first_leaf, leaves = bodies[min(bodies)]
    source = _source(step, bodies)
    handles: list[Any] = [Handle(source, first_leaf - index) for index in range(len(leaves))]
    call: Any = optree.tree_unflatten(spec, handles)
    try:
        result = _called(step, fn, *call)
    except KeyboardInterrupt:
        group.gang.interrupts.pending = True  # raised on the thread that waits for the step
        _answer(step, (False, "the merge function was interrupted"))
        return
    except Exception as error:
        step.merge_error = error
        _answer(step, (False, f"the merge function raised {type(error).__name__}"))
        return
    except BaseException:
        _answer(step, (False, "the merge function was interrupted"))
        raise
    try:
        results, result_spec = optree.tree_flatten(result, namespace="workbench")
        by_rank = {rank: (result_spec, [_for_rank(leaf, rank) for leaf in results]) for rank in requests}
        answer = codec.encode((True, by_rank))
    except Exception as error:  # pickling calls code of any class in the result
        name = getattr(fn, "__qualname__", repr(fn))
        step.merge_error = explain_unpicklable_result(name, result, error)
        _answer(step, (False, "the result of the merge function cannot be sent to the replicas"))
        return
    _post(step, answer)


def _objection(step: Step, bodies: dict[int, Any]) -> str:
    """Why the requested merge is impossible; "" if it is not."""
    expected = bodies[min(bodies)][1]
    for rank, (_, spec, _, _) in bodies.items():
        if spec != expected:
            return f"replica {rank} passed arguments of another structure to merge_call"
    return "" if step.on_merge is not None else "merge_call is not possible in this program"


def _called(step: Step, fn: Any, args: Any, kwargs: Any) -> Any:
    """Calls the merge function so that Ctrl-C can interrupt it; returns its result."""
    assert step.on_merge is not None
    group = step.group
    group.nesting += 1
    try:
        with group.gang.interrupts.lifted():
            return step.on_merge(fn, args, kwargs)
    finally:
        group.nesting -= 1


def _source(step: Step, bodies: dict[int, Any]) -> Step:
    """A step that stands for the paused one as the creator of the merge call's arguments, which already exist."""
    source = Step(step.group, step.serial, number=step.number, prepared=step.prepared, on_merge=None)
    source.ended = True
    for rank, (_, _, first_leaf, leaves) in bodies.items():
        source.leaves[rank] = {first_leaf - index: arrived(leaf) for index, leaf in enumerate(leaves)}
    return source


def refuse_merge(step: Step, why: str = "") -> None:
    """Ends the wait of replicas in an impossible merge."""
    waiting = sorted(step.merging)
    if not why:
        if step.failed:
            why = "another replica failed"
        else:
            ended = [rank for rank, leaves in enumerate(step.leaves) if leaves is not None]
            why = (
                f"replicas {waiting} called merge_call, replicas {ended} ended the step without it; "
                f"every replica must call it the same number of times"
            )
            step.merge_error = RuntimeError(why)
    step.merging = {}
    _answer(step, (False, why))


def refuse_stuck_merge(step: Step) -> None:
    """Ends a merge for which some replicas wait while another waits for them in a collective."""
    group = step.group
    paused, (_, seq) = min(step.merging.items())
    for name in group.worker_names:
        for row in group.gang.workers[name].statuses:
            there = row.group == group.id and row.step == step.number >= 0 and row.phase == "waiting"
            if there and row.rank not in step.merging and row.seq > seq:
                why = (
                    f"replica {paused} waits in merge_call, replica {row.rank} in {row.op} #{row.seq + 1}"
                    + (f" ({row.site})" if row.site else "")
                    + "; every replica must make the same calls in the same order"
                )
                refuse_merge(step, why)
                step.merge_error = CollectiveMismatch(
                    why, replica=row.rank, step=step.number, run=group.gang.run_id
                )
                group.abort(step.serial, why)
                return


def _answer(step: Step, payload: tuple[bool, str]) -> None:
    _post(step, step.group.gang.shipping.codec.encode(payload))


def _post(step: Step, payload: Any) -> None:
    gang = step.group.gang
    message = (MERGED, step.serial, payload)
    for name in step.group.worker_names:
        gang.post(gang.workers[name], message)


def _for_rank(leaf: Any, rank: int) -> Any:
    if isinstance(leaf, Handle):
        return Ref(leaf.serial, leaf.leaf)
    if type(leaf) is PerRank:
        return _for_rank(leaf.components[rank], rank)
    return leaf
