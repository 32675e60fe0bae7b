"""The checks, each a function of "quick or not" that gives rows; `ALL` names them in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.gpu import devices, finiteness, frameworks, kernels, nccl, numerics, sharing, strategies, telemetry
from tests.gpu.results import Row

Check = Callable[[bool], Iterable[Row]]

ALL: dict[str, Check] = {
    "fused-correctness": kernels.fused_correctness,
    "fused-bandwidth": kernels.fused_bandwidth,
    "summaries": kernels.summaries,
    "nccl-one-rank": nccl.nccl_one_rank,
    "nccl-two-ranks": nccl.nccl_two_ranks,
    "nccl-two-gpus": nccl.nccl_two_gpus,
    "grouped-gpus": nccl.grouped_gpus,
    "shared-gpu": sharing.shared_gpu,
    "event-timing": telemetry.event_timing,
    "nothing-waits": telemetry.nothing_waits,
    "telemetry-overhead": telemetry.telemetry_overhead,
    "torch": frameworks.torch_tensors,
    "jax": frameworks.jax_arrays,
    "training": strategies.training,
    "step-costs": strategies.step_costs,
    "two-workers": strategies.two_workers,
    "errors": strategies.errors,
    "finite-kernels": finiteness.flags_of_kernels,
    "finite-costs": finiteness.looking_costs,
    "finite-first-nan": finiteness.first_nan,
    "device-use": devices.device_use,
    "numerics-lines": numerics.lines,
    "numerics-dumps": numerics.dumps,
}
