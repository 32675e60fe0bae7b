"""Traced replica functions: traced once for all replicas, compiled once per shape, run as one program per host."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jax.sharding import PartitionSpec

from workbench.backends.jax.mesh import AXIS, ReplicaMesh, Rows
from workbench.backends.jax.operations import Operation, operations
from workbench.backends.jax.watch import Given, Seen, Wanted, watched
from workbench.errors import TracingError

# How JAX's error names the function that needs a size: "jnp.arange argument", "the size argument of jnp.nonzero".
_SIZE = re.compile(r"jnp\.\w+ argument|argument of jnp\.|jit-compiling jnp\.")
_PLAIN = (str, bytes, bool, int, float, complex, np.generic, np.ndarray)
_LEAK = (
    "a traced value of an earlier trace is used: it was kept in a global, an attribute or a list; return it from the "
    "function, or keep it in a wb.Variable"
)


class LeakedValue(Exception):
    """A traced value of an earlier trace was used.

    Attributes:
      frames: File, line and function of the calls that led there, the outermost first.
    """

    def __init__(self, frames: Sequence[tuple[str, int, str]]) -> None:
        super().__init__(_LEAK)
        self.frames = tuple(frames)


@dataclass(frozen=True, slots=True)
class Fixed:
    """A leaf of the result that is the same in every step, not an array of the program.

    Attributes:
      value: The leaf.
    """

    value: Any


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program ready to run on all replicas of this host.

    Attributes:
      call: `call(written, read, rows, shared) -> (results, new values)` for arrays with a row per replica.
      writes: Keys of the variables that it sets; their arrays are donated to it.
      reads: Keys of the variables that it only reads.
      leaves: Per leaf of the result a `Fixed`, or None for the next array.
      structure: What the body returned as the structure of the result.
      digest: SHA-256 of the lowered program, equal on all hosts.
      operations: The collectives that it contains, by name.
      seen: The operations whose results are checked, by the number that the program returns; empty if none is.
      given: The results of operations to dump; empty for none.
      gives_elements: Whether the program also returns these arrays.
    """

    call: Callable[..., Any]
    writes: tuple[Any, ...]
    reads: tuple[Any, ...]
    leaves: tuple[Fixed | None, ...]
    structure: Any
    digest: bytes
    operations: dict[str, Operation]
    seen: tuple[Seen, ...] = ()
    given: tuple[Given, ...] = ()
    gives_elements: bool = False

    @property
    def collectives(self) -> int:
        """How many collectives it contains."""
        return len(self.operations)

    @property
    def collective_bytes(self) -> int:
        """Bytes of their results on one replica."""
        return sum(operation.result_bytes for operation in self.operations.values())

    def __call__(
        self, variables: dict[Any, Any], rows: Sequence[Any], shared: Sequence[Any]
    ) -> tuple[list[Any], dict[Any, Rows], Rows | None, list[Rows]]:
        """Starts the program.

        Returns:
          The result's leaves (`Rows` or fixed values); new values of variables; if numbers are checked, for each of all
          replicas, the first bad operation in `seen`, or -1; and the arrays of `given`.
        """
        written = [variables[key] for key in self.writes]
        read = [variables[key] for key in self.reads]
        results, values = self.call(written, read, list(rows), list(shared))
        arrays = iter(results)
        leaves = [Rows(next(arrays)) if leaf is None else leaf.value for leaf in self.leaves]
        new = {key: Rows(value) for key, value in zip(self.writes, values, strict=True)}
        checks = Rows(next(arrays)) if self.seen else None
        return leaves, new, checks, [Rows(next(arrays)) for _ in self.given] if self.gives_elements else []


Body = Callable[
    [Sequence[Any], Sequence[Any], dict[Any, Any]], tuple[list[Any], Any, set[Any], dict[Any, Any]]
]


def trace(
    mesh: ReplicaMesh,
    body: Body,
    rows: Sequence[Any],
    shared: Sequence[Any],
    variables: dict[Any, tuple[tuple[int, ...], np.dtype[Any]]],
    *,
    checked: bool = False,
    wanted: Wanted | None = None,
) -> Compiled:
    """Traces `body` for one replica and compiles it for all.

    Every value enters as its own row, so that `jax.grad` in the function differentiates this replica's loss with
    respect to this replica's copy: nothing is summed implicitly.

    Args:
      mesh: The devices.
      body: `body(rows, shared, variables)` gets one replica's values and returns the leaves of the result, their
        structure, the keys of the variables that it read, and the new values of those that it set.
      rows: Arguments that differ by replica.
      shared: Arguments that are the same on all replicas.
      variables: Shape and dtype of each variable that it may use, by key.
      checked: Whether it reports which operation makes a NaN or an infinity.
      wanted: Which results of operations it also returns, None for none.
    """
    # If JAX is limited to 32 bits, it stores 64-bit variables in them, and would warn each time about a 64-bit dtype.
    variables = {
        key: (shape, np.dtype(jax.dtypes.canonicalize_dtype(dtype)))
        for key, (shape, dtype) in variables.items()
    }
    program = _Program(body, variables, checked, wanted)

    def jitted(function: Any) -> Any:
        shardings = (mesh.by_row, mesh.by_row, mesh.by_row, mesh.same)
        # A checked step may fail because of its numbers; the variables then keep their values, so nothing is donated.
        donated = () if checked else 0
        return jax.jit(function, donate_argnums=donated, in_shardings=shardings, out_shardings=mesh.by_row)

    by_row = PartitionSpec(AXIS)
    specs = by_row, by_row, by_row, PartitionSpec()
    spread = jax.shard_map(program.replica, mesh=mesh.mesh, in_specs=specs, out_specs=by_row, check_vma=False)
    state = {
        key: jax.ShapeDtypeStruct((mesh.size, *shape), dtype) for key, (shape, dtype) in variables.items()
    }
    traced = jitted(spread).trace(list(state.values()), [], list(rows), list(shared))
    leaked = len(traced.jaxpr.jaxpr.invars) - len(rows) - len(shared) - len(state)
    if leaked:  # JAX turned values of another trace into extra arguments and put them first
        raise LeakedValue(_calls_with_first(leaked, traced.jaxpr.jaxpr))
    writes = tuple(key for key in variables if key in program.written)
    reads = tuple(key for key in variables if key in program.read and key not in program.written)
    if len(writes) == len(variables):
        lowered = traced.lower()
    else:
        run = _restricted(traced, state, writes, reads)
        used = [state[key] for key in writes], [state[key] for key in reads]
        lowered = jitted(run).lower(*used, list(rows), list(shared))
    digest = hashlib.sha256(lowered.as_text().encode()).digest()
    compiled = lowered.compile()
    inside = operations(compiled.as_text() or "", mesh.size)
    return Compiled(
        compiled,
        writes,
        reads,
        program.leaves,
        program.structure,
        digest,
        inside,
        program.seen,
        program.given,
        wanted is not None and wanted.elements,
    )


@dataclass(slots=True)
class _Program:
    """What one replica does in a step. Tracing `replica` fills in all fields from `leaves` on.

    Attributes:
      body, variables, checked, wanted: See `trace`.
      leaves: One entry per leaf of the result: a `Fixed`, or None for an array.
      structure: What the body returned as the structure of the result.
      read: Keys of the variables that the body read.
      written: Keys of the variables that it set.
      seen: The operations whose results are checked.
      given: What a dump records of the operations' results.
    """

    body: Body
    variables: dict[Any, tuple[tuple[int, ...], np.dtype[Any]]]
    checked: bool
    wanted: Wanted | None
    leaves: tuple[Fixed | None, ...] = ()
    structure: Any = None
    read: frozenset[Any] = frozenset()
    written: frozenset[Any] = frozenset()
    seen: tuple[Seen, ...] = ()
    given: tuple[Given, ...] = ()

    def replica(self, state: Any, nothing: Any, own: Any, same: Any) -> Any:
        """Results and new values, one row each: those of the step, then what it checked and dumped."""
        if not self.checked and self.wanted is None:
            return self._step(state, own, same)
        seen = watched(self._step, state, own, same, checked=self.checked, wanted=self.wanted)
        self.seen, self.given = seen.seen, seen.given
        results = seen.results
        if seen.seen:  # all replicas know the flags of all, so a step fails on every host or on none
            results = [*results, jax.lax.all_gather(seen.first, AXIS)[jnp.newaxis]]
        return [*results, *(array[jnp.newaxis] for array in seen.arrays)], seen.new

    def _step(self, state: Any, own: Any, same: Any) -> Any:
        values = {key: array[0] for key, array in zip(self.variables, state, strict=True)}
        leaves, self.structure, read, written = self.body([array[0] for array in own], same, values)
        self.leaves = tuple(_kept(leaf) for leaf in leaves)
        self.read, self.written = frozenset(read), frozenset(written)
        results = [
            jnp.asarray(leaf)[jnp.newaxis]
            for leaf, fixed in zip(leaves, self.leaves, strict=True)
            if fixed is None
        ]
        new = [
            jnp.asarray(written[key], dtype)[jnp.newaxis]
            for key, (_, dtype) in self.variables.items()
            if key in written
        ]
        return results, new


def _calls_with_first(count: int, program: Any) -> list[tuple[str, int, str]]:
    """The calls that led to the first operation on any of the first `count` arguments of a replica's program."""
    (spread,) = (operation for operation in program.eqns if operation.primitive.name == "shard_map")
    replica = spread.params["jaxpr"]
    leaked = {id(value) for value in replica.invars[:count]}
    for operation in replica.eqns:
        called = operation.source_info.traceback
        if called is not None and any(id(value) in leaked for value in operation.invars):
            return [
                (frame.file_name, frame.line_num, frame.function_name.rpartition(".")[2])
                for frame in reversed(called.frames)
            ]
    return []


def _restricted(
    traced: Any, state: dict[Any, Any], writes: tuple[Any, ...], reads: tuple[Any, ...]
) -> Callable[..., Any]:
    """The traced program as a function of its variables, starting with the written ones, which are donated."""
    flat = jaxpr_as_fun(traced.jaxpr)

    def run(new: Any, old: Any, rows: Any, shared: Any) -> Any:
        present = {**dict(zip(writes, new, strict=True)), **dict(zip(reads, old, strict=True))}
        values = [
            present[key] if key in present else jnp.zeros(spec.shape, spec.dtype)
            for key, spec in state.items()
        ]
        outputs = flat(*values, *rows, *shared)
        split = len(outputs) - len(writes)
        return list(outputs[:split]), list(outputs[split:])

    return run


def _kept(leaf: Any) -> Fixed | None:
    """How to keep a leaf of the result: a value that is not traced is the same in every step."""
    if isinstance(leaf, jax.Array):  # true of traced values, too
        return None
    if isinstance(leaf, _PLAIN):
        return Fixed(leaf)
    try:
        jnp.asarray(leaf)
    except (TypeError, ValueError):
        return Fixed(leaf)
    return None


def explain(error: BaseException) -> str:
    """What a JAX tracing error means, and what to write instead; "" for other errors."""
    errors = jax.errors
    text = ""
    if isinstance(error, errors.TracerBoolConversionError):
        text = (
            "`if`, `while`, `and`, `or` or bool() on a traced value: a traced function runs once for all replicas and "
            "steps, so Python cannot decide by its values; use ctx.select(condition, a, b), jax.numpy.where or "
            "jax.lax.cond"
        )
    elif isinstance(error, errors.NonConcreteBooleanIndexError) or _wants_shape(error):
        text = (
            "the shape of a result depends on values, which a compiled program cannot have; keep the shape and mask: "
            "jax.numpy.where(mask, x, 0), jax.numpy.nonzero(mask, size=n), jax.numpy.unique(x, size=n); take "
            "sizes and ends of slices from x.shape or a constant; jax.lax.dynamic_slice moves a slice of fixed size"
        )
    elif isinstance(error, errors.TracerIntegerConversionError):
        text = (
            "a traced value is used as a Python integer, for a shape, an index of a list or range(); take it from "
            "x.shape or a constant, or index with jax.numpy.take or jax.lax.fori_loop"
        )
    elif isinstance(error, errors.TracerArrayConversionError) or (
        isinstance(error, ValueError) and isinstance(error.__cause__, errors.ConcretizationTypeError)
    ):  # NumPy raises the latter when a traced value is written into an array
        text = (
            "a traced value was given to NumPy (or another library that wants the numbers now); use jax.numpy, "
            "ctx.xp, or do this part outside of the replica function"
        )
    elif isinstance(error, errors.UnexpectedTracerError | LeakedValue):
        text = _LEAK
    elif isinstance(error, errors.ConcretizationTypeError):
        text = (
            "a traced value is needed as a concrete number here (float(), int(), .item()); return it and look at it "
            "outside of the replica function"
        )
    elif isinstance(error, TypeError) and "unhashable type" in str(error) and "Tracer" in str(error):
        text = (
            "a traced value is looked up in a dictionary or a set, which needs to know it now; index an array with it: "
            "jax.numpy.take(jax.numpy.asarray([...]), i)"
        )
    elif isinstance(error, TypeError) and "__format__" in str(error) and "Tracer" in str(error):
        text = (
            "a traced value is put into a text, which needs to know it now; use jax.debug.print('{}', x), or return "
            "the value and format it outside of the replica function"
        )
    elif isinstance(error, TypeError) and "JAX arrays are immutable" in str(error):
        text = (
            "an array is written to, and those of a traced function cannot be: x = x.at[i].set(value), or .add(value), "
            "gives a new one"
        )
    elif isinstance(error, TracingError):
        text = str(error)
    return text


def _wants_shape(error: BaseException) -> bool:
    """Whether the error says that JAX needs a size and got a traced value."""
    text = str(error)
    if isinstance(error, TypeError) and text.startswith("Shapes must be 1D sequences of concrete values"):
        return True
    if isinstance(error, IndexError) and text.startswith("Slice entries must be static integers"):
        return True
    return type(error) is jax.errors.ConcretizationTypeError and _SIZE.search(text) is not None


def wait(rows: Sequence[Rows]) -> None:
    """Waits until all are computed, however long it takes, so only for programs that need no other process."""
    # One by one: `jax.block_until_ready` searches any object for arrays, which takes longer than waiting.
    for item in rows:
        if not item.array.is_deleted():
            item.array.block_until_ready()


def ready(rows: Sequence[Rows]) -> bool:
    """Whether all are computed."""
    return all(item.array.is_deleted() or item.array.is_ready() for item in rows)
