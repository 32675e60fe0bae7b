"""The hosts of a traced program exchange before it runs what they have read and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.communicators.core.options import CommunicationOptions
from workbench.errors import TracingError
from workbench.runtime.comm.messages import CALL
from workbench.runtime.replica.device_threads import Idle
from workbench.runtime.traced.arguments import PartialBatch
from workbench.runtime.traced.batch_agreement import fed, kinds, most_rows, rows_of
from workbench.runtime.traced.group_programs import GroupPrograms

if TYPE_CHECKING:
    from workbench.backends.jax.program import Compiled
    from workbench.runtime.replica.env import ReplicaEnv
    from workbench.runtime.replica.local_group import LocalGroup
    from workbench.runtime.traced.host import TracingHost


class HostExchange:
    """Uses the replicas' ordinary communicators, on the threads of the devices."""

    def __init__(self, host: TracingHost, idle: Idle) -> None:
        self._host = host
        self._idle = idle

    def agree(
        self,
        serial: int,
        group: LocalGroup,
        known: GroupPrograms,
        leaves: Sequence[Any],
        partial_batch: PartialBatch,
    ) -> dict[int, int]:
        """Compares the values that several hosts have read; see `batch_agreement`."""
        if known.alone:
            return {}
        values = fed(self._host.executors[known.local[0][1]], leaves)
        new = {index: ref for index, ref in values.items() if ref not in known.agreed}
        if new:
            device, refs = dict(known.local), list(new.values())
            everyones = self._gathered(
                serial,
                group,
                known,
                lambda env: kinds(self._host.executors[device[env.rank]], refs),
                "arguments",
            )
            known.agreed.update(zip(refs, rows_of(everyones, list(new)), strict=True))
        return most_rows({index: known.agreed[ref] for index, ref in values.items()}, partial_batch)

    def compare(self, serial: int, group: LocalGroup, known: GroupPrograms, program: Compiled) -> None:
        """Ensures that all hosts have compiled the same program, because running different ones would hang all of them.

        Args:
          serial: Number of the step.
          group: The replicas of this host.
          known: The state of the group.
          program: The program that this host has compiled.

        Raises:
          TracingError: if they differ.
          DeadlineExceededError: if a host does not arrive in time.
        """
        if known.alone:
            return
        mine = np.frombuffer(program.digest, np.uint8)[np.newaxis]
        found = self._gathered(serial, group, known, lambda env: mine, "programs")
        different = [rank for rank in range(len(found)) if (found[rank] != found[0]).any()]
        if different:
            hosts = ", ".join(dict.fromkeys(group.devices[rank].host for rank in different))
            raise TracingError(
                f"hosts traced different programs: that of {hosts} is not that of {group.devices[0].host}; the "
                f"function must not depend on the host (its name, time, files, or arguments whose shapes differ)"
            )

    def _gathered(
        self,
        serial: int,
        group: LocalGroup,
        known: GroupPrograms,
        mine: Callable[[ReplicaEnv], Any],
        what: str,
    ) -> Any:
        """Gathers the results of `mine(env)` from the replicas of all hosts, in rank order. Does not wait for devices.

        Raises:
          DeadlineExceededError: if a host does not arrive in time.
        """
        options = CommunicationOptions(timeout_seconds=120.0)

        def gather(env: ReplicaEnv) -> Any:
            # Not marked as finished, because the step may have a second exchange.
            env.communicator.begin(env.step, serial)
            with env.communicator.internal(what):
                return env.communicator.all_gather(mine(env), 0, site=what, options=options)

        return self._on_devices(group, known, gather)

    def _on_devices(
        self, group: LocalGroup, known: GroupPrograms, function: Callable[[ReplicaEnv], Any]
    ) -> Any:
        """Calls `function` for each local replica on its own thread; returns the first replica's result."""
        found: dict[int, Any] = {}

        def call(device: int) -> None:
            rank = group.rank_of_device.get(device)
            if rank is not None:
                try:
                    found[rank] = function(group.envs[rank])
                except BaseException as error:
                    found[rank] = error

        self._host.to_devices((CALL, call))
        self._idle.wait(lambda: self._host.closed)
        for result in found.values():
            if isinstance(result, BaseException):
                raise result
        return found[known.local[0][0]]
