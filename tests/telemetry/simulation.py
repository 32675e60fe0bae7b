"""Made-up runs with known times: what replicas would have written, collective by collective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.telemetry.reading import drained
from workbench.telemetry.recording.ring import Ring
from workbench.telemetry.records import Signature

MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """One collective; times are ns of the driver's clock.

    Attributes:
      enter_ns: By replica; None where the replica never came.
      end_ns: By replica, or one for all.
    """

    enter_ns: Sequence[int | None]
    end_ns: int
    step: int = 0
    seq: int = 0
    op: str = "all_reduce"
    nbytes: int = 4096
    dtype: str = "float32"
    redop: str = "sum"
    group: str = "g"
    generation: int = 0
    state: str = "ok"
    site: str = "train.py:84"
    algorithm: str = "direct"
    packs: int = 1
    purpose: str = ""
    inputs: str = ""


@dataclass(slots=True)
class Replicas:
    """Rings of one group: replica r on `hosts[r]`, whose clock is `offsets_ns[host]` behind."""

    hosts: Sequence[str]
    offsets_ns: dict[str, int] = field(default_factory=dict)
    err_ns: int = 0
    capacity: int = 4096
    size: int | None = None
    rings: list[Ring] = field(default_factory=list)

    def __post_init__(self) -> None:
        size = len(self.hosts) if self.size is None else self.size
        for replica, host in enumerate(self.hosts):
            ring = Ring(
                self.capacity, replica=replica, host=host, device=f"cpu:{replica}", run_id="run", size=size
            )
            ring.clock_offset_ns = self.offsets_ns.get(host, 0)
            ring.clock_err_ns = self.err_ns
            self.rings.append(ring)

    def record(self, *calls: Call) -> None:
        for call in calls:
            ready = max((enter for enter in call.enter_ns if enter is not None), default=0)
            for ring, enter in zip(self.rings, call.enter_ns, strict=True):
                if enter is None:
                    continue
                ended = call.state != "entered"
                offset = ring.clock_offset_ns
                signature = Signature(
                    generation=call.generation,
                    group=call.group,
                    op=call.op,
                    redop=call.redop,
                    dtype=call.dtype,
                    algorithm=call.algorithm,
                    packs=call.packs,
                    transport="shm",
                    state=call.state,
                    site=call.site,
                    purpose=call.purpose,
                    inputs=call.inputs,
                )
                ring.write(
                    ring.number(signature),
                    call.step,
                    call.seq,
                    call.nbytes // 4,
                    call.nbytes,
                    enter - offset,
                    ready - offset if ended else 0,
                    call.end_ns - offset if ended else 0,
                )

    def drain(self) -> list[bytes]:
        return [data for ring in self.rings if (data := drained(ring))]


def steps(count: int, lateness_ns: Sequence[int], *, first: int = 0) -> list[Call]:
    """`count` steps of one all_reduce, in which replica r comes `lateness_ns[r]` late; 1 ms apart."""
    calls = []
    for step in range(first, first + count):
        start = (step + 1) * MS
        enter = [start + late for late in lateness_ns]
        calls.append(Call(enter, max(enter) + MS // 10 + step, step=step))
    return calls
