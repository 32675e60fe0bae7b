"""How long an all_reduce takes over N replicas, by the α–β model: pure arithmetic, nothing is run.

A message of S bytes over a link takes α + S/β (R. Hockney, Parallel Computing 20, 1994). Counting the messages that
must follow one another, and their bytes, gives for n > 1 replicas

| algorithm | time | what it is |
|---|---|---|
| ring | 2(n−1)·α + 2(n−1)/n · S/β | reduce_scatter, then all_gather, around a ring |
| tree | 2⌈log₂ n⌉ · (α + S/β) | reduce up a binomial tree, broadcast down |
| one | 2(n−1) · (α + S/β) | one replica takes in all arrays, one by one, and sends the sum to each |

Sources: ring and tree as in R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations
in MPICH", IJHPCA 19 (2005); P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations", JPDC 69 (2009), show that no algorithm sends fewer bytes than the ring. "one" counts the messages of its
only link. The model ignores the time of additions and congestion: each replica has its own link, which sends and
receives at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Pattern = Literal["ring", "tree", "one"]
PATTERNS: Final[tuple[Pattern, ...]] = get_args(Pattern)


@dataclass(frozen=True, slots=True)
class LinkCost:
    """What one message costs.

    Attributes:
      latency_us: α, µs per message.
      bandwidth: β, GB/s.

    Raises:
      ValueError: if α is negative, or β not above zero.
    """

    latency_us: float
    bandwidth: float

    def __post_init__(self) -> None:
        if not self.latency_us >= 0 or not self.bandwidth > 0:
            raise ValueError(
                f"a link has latency_us >= 0 and bandwidth > 0 (GB/s), got {self.latency_us} and {self.bandwidth}"
            )


def weights(pattern: Pattern, replicas: int) -> tuple[float, float]:
    """How many messages follow one another, and how many times S crosses a link in total.

    Args:
      pattern: "ring", "tree" or "one".
      replicas: n.

    Raises:
      ValueError: if the pattern is unknown, or there is no replica.

    >>> [weights(pattern, 8) for pattern in PATTERNS]
    [(14.0, 1.75), (6.0, 6.0), (14.0, 14.0)]
    """
    if pattern not in PATTERNS:
        raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}")
    if replicas < 1:
        raise ValueError(f"there must be at least one replica, got {replicas}")
    match pattern:
        case "ring":
            return 2.0 * (replicas - 1), 2 * (replicas - 1) / replicas
        case "tree":
            rounds = 2.0 * (replicas - 1).bit_length()  # ⌈log₂ n⌉, without rounding errors
            return rounds, rounds
        case "one":
            return 2.0 * (replicas - 1), 2.0 * (replicas - 1)


def all_reduce_us(pattern: Pattern, replicas: int, size_bytes: float, link: LinkCost) -> float:
    """Predicted time of an all_reduce of `size_bytes`, in µs; 0 for one replica.

    Args:
      pattern: The algorithm, such as "ring".
      replicas: Number of replicas.
      size_bytes: Bytes of the array on each replica.
      link: Latency and bandwidth of the links between replicas.

    >>> all_reduce_us("ring", 4, 1_000_000, LinkCost(latency_us=10, bandwidth=1.0))
    1560.0
    """
    messages, volumes = weights(pattern, replicas)
    return messages * link.latency_us + volumes * size_bytes / (1000 * link.bandwidth)


def predicted_step_us(
    pattern: Pattern, replicas: int, *, compute_us: float, size_bytes: float, link: LinkCost
) -> float:
    """Predicted time of a training step: each replica computes, then all reduce their gradients, without overlap.

    Args:
      pattern: The algorithm.
      replicas: Number of replicas.
      compute_us: Computing time of one replica per step. With a fixed batch per replica, it does not depend on their
        number; with a fixed global batch, pass one replica's share.
      size_bytes: Size of the gradients.
      link: α and β.
    """
    return compute_us + all_reduce_us(pattern, replicas, size_bytes, link)


def link_cost(pattern: Pattern, replicas: int, *, latency_us: float, bandwidth: float) -> LinkCost:
    """α and β of a link, from the fit t = latency + S / bandwidth of whole all_reduces over `replicas`.

    Args:
      pattern: The algorithm of the all_reduces.
      replicas: The number of replicas that were measured, at least two.
      latency_us: The latency of the fit.
      bandwidth: The bandwidth of the fit, GB/s.

    Raises:
      ValueError: if there is one replica, which sends nothing.

    >>> link_cost("ring", 4, latency_us=60.0, bandwidth=2.0)
    LinkCost(latency_us=10.0, bandwidth=3.0)
    """
    messages, volumes = weights(pattern, replicas)
    if replicas < 2:
        raise ValueError("the cost of a link needs all_reduces over at least two replicas: one sends nothing")
    return LinkCost(latency_us / messages, bandwidth * volumes)
