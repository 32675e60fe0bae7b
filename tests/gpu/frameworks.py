"""Checks of tensors and arrays of other libraries on the GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from tests.gpu.replicas import alone
from tests.gpu.results import Row, Skip, held, median
from workbench.communicators import Reduction

TORCH = "PyTorch tensors on the GPU"
JAX = "JAX arrays on the GPU"


def torch_tensors(quick: bool) -> Iterator[Row]:
    """Tensors on the GPU go in without a copy and come back as tensors."""
    try:
        import torch
    except ImportError as error:
        raise Skip("PyTorch is not installed", TORCH) from error
    if not torch.cuda.is_available():
        raise Skip("this PyTorch has no CUDA", TORCH)
    communicator = alone(None)
    wrong = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.complex64):
        tensor = torch.arange(10, device="cuda").to(dtype)
        (result,) = communicator.all_reduce([tensor], Reduction("sum"))
        if type(result) is not torch.Tensor or result.dtype != dtype or not torch.equal(result, tensor):
            wrong.append(str(dtype))
        if result.data_ptr() == tensor.data_ptr():
            wrong.append(f"{dtype} is not owned")
    many = [
        torch.full((n, 2), float(n), device="cuda", dtype=dtype)
        for dtype in (torch.float32, torch.bfloat16)
        for n in (1, 3, 0, 5)
    ]
    many.append(torch.arange(6.0, device="cuda").reshape(2, 3).T)
    together = communicator.all_reduce(many, Reduction("sum"))
    wrong += [
        f"{tuple(tensor.shape)} {tensor.dtype} among others"
        for tensor, result in zip(many, together, strict=True)
        if result.dtype != tensor.dtype or not torch.equal(result, tensor)
    ]
    weight = torch.ones(3, device="cuda", requires_grad=True)
    (weight**2).sum().backward()
    (gradient,) = communicator.all_reduce([weight.grad], Reduction("mean"))
    if gradient.tolist() != [2.0, 2.0, 2.0]:
        wrong.append("gradient")
    yield held(TORCH, not wrong, f"wrong: {wrong or 'none'}")
    eight = [torch.ones(64, 32, device="cuda") for _ in range(8)]

    def combined() -> None:
        communicator.all_reduce(eight, Reduction("sum"))
        communicator.finish()

    taken = median(20 if quick else 500, combined)
    yield Row("all_reduce of 8 small PyTorch tensors", "noted", f"{taken * 1e6:,.0f} µs, waited for")
    communicator.close()


def jax_arrays(quick: bool) -> Iterator[Row]:
    """Arrays of JAX on the GPU, in a process of their own: JAX must not take all memory."""
    code = (
        "import jax, numpy as np; from tests.gpu.replicas import alone\n"
        "from workbench.communicators import Reduction\n"
        "assert jax.devices()[0].platform == 'gpu', jax.devices()\n"
        "c = alone(None); x = jax.numpy.arange(10.0)\n"
        "(y,) = c.all_reduce([x], Reduction('sum')); c.finish(); c.close()\n"
        "assert isinstance(y, jax.Array) and (np.asarray(y) == np.arange(10.0)).all(); print('right')"
    )
    try:
        import jax  # noqa: F401
    except ImportError as error:
        raise Skip("JAX is not installed", JAX) from error
    environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    if "assert jax.devices()" in done.stderr:
        raise Skip("this JAX has no CUDA", JAX)
    yield held(JAX, done.returncode == 0, (done.stdout or done.stderr[-80:]).strip())
