"""Connects GPUs by NCCL: finds each replica's GPU, shares the unique id, and makes a communicator per local rank."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from workbench.backends.accelerator import Accelerator, GpuIdentity
from workbench.communicators.core.topology import Topology
from workbench.communicators.gpu.nccl import NcclOps, group
from workbench.communicators.threads.rendezvous import Exchange
from workbench.errors import BackendUnavailable

_UNIQUE_ID: Final = -1
"""Number of the block with the unique id."""


class Blocking(Protocol):
    """Makes calls that may block in C forever."""

    def __call__(self, what: str, call: Callable[[], Any], undo: Callable[[Any], None]) -> Any:
        """Returns the result of `call`, which runs on another thread.

        Args:
          what: The call in words.
          call: The function to call.
          undo: Called with the result if `call` returns after it was given up.

        Raises:
          WorkbenchError: if the group breaks, or a deadline passes, before it returns.
        """


def connect(
    accelerator: Accelerator,
    topology: Topology,
    ordinals: Mapping[int, int],
    *,
    exchange: Exchange,
    blocking: Blocking,
) -> NcclOps:
    """Connects the group's GPUs; every process must call it at the same point.

    Args:
      accelerator: The GPU library.
      topology: The topology of the whole group.
      ordinals: Device of each local rank.
      exchange: Sends every process's blocks to all others, over the host link.
      blocking: Runs the initialisation, which waits for all ranks.

    Raises:
      BackendUnavailable: if NCCL is missing, or two replicas are on one GPU.
    """
    nccl = accelerator.nccl
    blocks = exchange({rank: _encoded(accelerator.identity(at)) for rank, at in ordinals.items()})
    identities = [_decoded(blocks[rank]) for rank in range(topology.size)]
    _refuse_duplicates(topology, identities)
    # Created only here, because it starts an NCCL thread that waits for all ranks.
    made = {_UNIQUE_ID: np.frombuffer(bytes(nccl.get_unique_id()), np.uint8)} if 0 in ordinals else {}
    unique_id = exchange(made)[_UNIQUE_ID].tobytes()
    hosts = topology.hosts
    order = sorted(
        range(topology.size),
        key=lambda rank: (hosts.index(topology.members[rank].host), identities[rank].pci, rank),
    )
    places = {rank: (ordinal, order.index(rank)) for rank, ordinal in ordinals.items()}
    communicators = blocking(
        "connecting the GPUs (NCCL)",
        lambda: _communicators(accelerator, nccl, places, topology.size, unique_id),
        _abort_all,
    )
    return NcclOps(accelerator, communicators, ordinals, order=order)


def _communicators(
    accelerator: Accelerator, nccl: Any, places: Mapping[int, tuple[int, int]], size: int, unique_id: bytes
) -> dict[int, Any]:
    """Makes a communicator for each local rank; `places` has its device and its rank in NCCL."""
    made: dict[int, Any] = {}
    try:
        with group(nccl, contextlib.nullcontext()):
            for rank, (ordinal, place) in places.items():
                with accelerator.on(ordinal):
                    made[rank] = nccl.NcclCommunicator(size, unique_id, place)
    except BaseException:
        _abort_all(made)
        raise
    return made


def _abort_all(communicators: Mapping[int, Any]) -> None:
    for communicator in communicators.values():
        with contextlib.suppress(Exception):  # it may never have been connected
            communicator.abort()


def _refuse_duplicates(topology: Topology, identities: Sequence[GpuIdentity]) -> None:
    """Refuses two replicas on one GPU, more clearly than NCCL does.

    Raises:
      BackendUnavailable: if two replicas are on one GPU; names them, their host and the GPU.
    """
    if os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE") == "1":
        return  # an experimental feature of NCCL since 2.30
    seen: dict[str, int] = {}
    for rank, identity in enumerate(identities):
        host = topology.members[rank].host
        other = seen.setdefault(identity.uuid, rank)
        if other != rank:
            raise BackendUnavailable(
                f"replicas {other} and {rank} are both on the {identity.name or 'GPU'} at {identity.pci} of host "
                f"{host}; NCCL needs one GPU per replica: start one worker per GPU (wb.connect() does), set "
                f"CUDA_VISIBLE_DEVICES for each worker, or put several replicas on one with wb.connect(gpu_replicas=…)"
            )


def _encoded(identity: GpuIdentity) -> np.ndarray:
    text = json.dumps([identity.uuid, identity.pci, identity.name])
    return np.frombuffer(text.encode(), np.uint8)


def _decoded(block: np.ndarray) -> GpuIdentity:
    return GpuIdentity(*json.loads(block.tobytes()))
