"""The bars that our figures are held to: absolute ones, and ratios to a peer measured in the same rounds."""

from __future__ import annotations

from dataclasses import dataclass

from tests.benchmarks import input_cases as cases
from tests.benchmarks import server_cases
from tests.benchmarks.measure import SIZES
from tests.benchmarks.summary import Figure, Key, times_as_fast


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
      ours: Our case.
      limit: With a peer, how many times as fast ours must be; without, the most that ours may be, or the least if it is
        a rate.
      peer: The case that ours is compared with, or None.
      unit: The unit of a limit without a peer.
    """

    ours: Key
    limit: float
    peer: Key | None = None
    unit: str = ""

    def value(self, found: dict[Key, Figure]) -> float | None:
        """The ratio, or our figure; None if something was not measured."""
        ours = found.get(self.ours)
        if ours is None or self.peer is None:
            return None if ours is None else ours.median
        peer = found.get(self.peer)
        return None if peer is None else times_as_fast(ours, peer)

    @property
    def sign(self) -> str:
        """On which side of the limit the value must be: "≥" or "≤"."""
        return "≥" if self.peer is not None or self.unit.endswith("/s") else "≤"

    def met(self, value: float) -> bool:
        """Whether a value reaches the bar."""
        return value >= self.limit if self.sign == "≥" else value <= self.limit


OPENMPI, GLOO = "OpenMPI (mpi4py)", "gloo (torch.distributed)"
SOCKETS = "floor: pickle over bare sockets"


def _most(
    suite: str, what: str, limit: float, unit: str, *, replicas: int = 2, who: str = "workbench"
) -> Bar:
    return Bar(Key(suite, replicas, who, what), limit, unit=unit)


def _input(what: str, limit: float, than: str) -> Bar:
    return _faster("input", what, limit, than, replicas=0)


def _rate(what: str, limit: float) -> Bar:
    return Bar(Key("input", 0, "workbench", what), limit, unit="elements/s")


def _faster(
    suite: str, what: str, limit: float, than: str, *, replicas: int = 2, who: str = "workbench"
) -> Bar:
    return Bar(Key(suite, replicas, who, what), limit, Key(suite, replicas, than, what))


BARS = (
    _faster("dispatch", "noop", 1 / 1.6, SOCKETS),
    _faster("dispatch", "noop", 3, "TF tf.function"),
    _faster("dispatch", "1 KB", 1 / 1.6, SOCKETS),
    _faster("dispatch", "1 KB", 5, "TF tf.function"),
    _faster("dispatch", "1 KB, pipelined", 1 / 2, SOCKETS),
    _faster("dispatch", "1 KB, pipelined", 3, "TF loop inside tf.function"),
    _most("all_reduce", "1 KB", 5, "µs"),
    *(_faster("all_reduce", what, 1.5, OPENMPI) for what in ("64 KB", "1 MB")),
    *(_faster("all_reduce", what, 1.2, OPENMPI) for what in ("16 MB", "128 MB")),
    _faster("all_reduce", "16 MB", 1, "JAX psum"),
    _faster("all_reduce", "128 MB", 1.3, "TF ReductionToOneDevice", who="communicator alone, shared"),
    *(_faster("all_reduce", what, 3, GLOO) for what in SIZES),
    _faster("all_reduce", "1 KB", 0.6, OPENMPI, replicas=4),
    *(_faster("all_reduce", what, 1.2, OPENMPI, replicas=4) for what in ("1 MB", "16 MB", "128 MB")),
    *(_faster("all_reduce", what, 3, GLOO, replicas=4) for what in SIZES),
    _faster("training", "MLP steps", 1.2, "JAX shard_map", replicas=0),
    _faster("training", "MLP steps", 3, "TF MirroredStrategy", replicas=0),
    _faster("training", "MLP steps", 0.85, "NumPy alone", replicas=0),
    _faster("training", "MLP steps", 1, "PyTorch alone", replicas=0),
    _faster("traced", "1 ms step", 1 / 1.1, "JAX shard_map", replicas=8),
    _faster("traced", "trace and compile", 1 / 1.2, "JAX shard_map", replicas=8),
    _most("telemetry", "recording one all_reduce", 0.5, "µs"),
    _most("telemetry", "slow-down of 1 MB", 1, "%"),
    _most("failure", "killed in all_reduce: error", 2, "s"),
    _most("failure", "killed while computing: error", 2, "s"),
    *(
        _faster("servers", what, limit, peer)
        for what, limit in (
            (server_cases.SCHEDULED, 5),
            (server_cases.ROUND_TRIP, 1 / 0.3),
            (server_cases.LOOKUP, 3),
            (server_cases.SCATTER, 3),
        )
        for peer in server_cases.PEERS.values()
    ),
    *(_faster("checkpoints", what, 0.7, "dd") for what in ("write", "read")),
    _most("checkpoints", "slow-down by saving in the background", 5, "%"),
    _most("debugging", "slowest assertion of a scalar that passes", 5, "µs", replicas=0),
    _most("debugging", "step with enable_check_numerics", 2, "×"),
    _most("debugging", "traced step with enable_check_numerics", 2, "×"),
    _most("startup", "import", 0.1, "s"),
    _most("startup", "connect to first step", 1.0, "s"),
    _most("views", "inspect 1 GB", 0.5, "s"),
    _most("views", "inspect 1 GB, sent", 64, "kB"),
    _most("views", "its elements, sent", 64, "kB"),
    _most("views", "views' code", 180, "kB", replicas=0),
    _most("views", "flood, kernel, view open", 10, "% of a core"),
    _most("views", "flood, slow-down of the job", 1, "%"),
    _most("views", "pane, open to first paint", 0.3, "s"),
    _most("views", "pane of the Overview, open to first paint", 0.3, "s"),
    _most("views", "overview, first paint", 0.3, "s", replicas=512),
    _most("views", "overview, frames", 60, "frames/s", replicas=512),
    _most("views", "overview, main thread per update", 16.7, "ms", replicas=512),
    _most("views", "crowd, key to paint", 100, "ms", replicas=512),
    _most("views", "crowd, growth of the heap", 10, "%", replicas=512),
    _most("views", "crowd, growth of the page", 8, "elements", replicas=512),
    _most("scaling", "growth", 1.5, "×", replicas=0, who="workbench, threads, noop"),
    _most("scaling", "growth", 1.5, "×", replicas=0, who="workbench, threads, 1 KB"),
    _most("scaling", "growth", 1.5, "×", replicas=0, who="workbench, one worker process, noop"),
    _most("scaling", "growth", 1.5, "×", replicas=0, who="workbench, one worker process, 1 KB"),
    _input(cases.RANGE, 1.3, "DataLoader"),
    _input(cases.RANGE_MAP, 1, "tf.data"),
    *(_input(cases.SHUFFLED, 4, peer) for peer in ("tf.data", "DataLoader", "Grain")),
    _most("input", cases.FIRST, 2, "ms", replicas=0),
    _input(cases.LINES, 1, "DataLoader"),
    _input(cases.LINES_SINGLE, 5, "tf.data"),
    *(_input(cases.RECORDS, 1.6, peer) for peer in ("tf.data", "tf.data, interleaved", "DataLoader")),
    _input(cases.RECORDS_SINGLE, 1, "Python loop"),
    *(_input(what, 2, "tf.io.parse_example") for what in cases.PARSED),
    *(_input(what, 0.8, "pyarrow scan") for what in (cases.TABLE, cases.TABLE_COLUMNS)),
    _rate(cases.AHEAD, 420),
    _rate(cases.SOURCES, 2400),
    _rate(cases.PARALLEL, 3600),
    _input(cases.PYTHON_BOUND, 1.8, "workbench, one at a time"),
    *(_input(what, 2, "TF MirroredStrategy") for what in (cases.ITERATED, cases.RUN)),
    *(_input(what, 5, "tf.data service") for what in (cases.SERVICE_SINGLE, cases.SERVICE_BATCHED)),
    _most("input", cases.MEMORY, 256, "MiB", replicas=0),
)
