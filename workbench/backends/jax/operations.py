"""The collectives in a compiled program, according to XLA's text."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

# A result's shape in compiled HLO, such as f32[4,8]{1,0}, followed by the operation that makes it.
_SHAPE = re.compile(r"([a-z]+[0-9]+[a-z0-9]*|pred)\[([0-9,]*)\]")
_KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
_COLLECTIVE = re.compile(
    r"%?(?P<name>[\w.-]+) = (?P<shapes>.+?) "
    rf"(?P<kind>{'|'.join(_KINDS)})(?:-start)?\((?P<rest>.*)"
)
_BITS = {"pred": 8, "bf16": 16}
_DTYPES = {"pred": "bool", "bf16": "bfloat16", "c64": "complex64", "c128": "complex128"}
_FAMILIES = {"f": "float", "s": "int", "u": "uint"}
_REDUCTIONS = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod"}


@dataclass(frozen=True, slots=True)
class Operation:
    """One collective of a program, as telemetry records it.

    Attributes:
      op: The kind, such as "all_reduce".
      redop: The reduction, such as "sum", or "".
      dtype: Name of the element type, "mixed" if there are several.
      count: Elements of its result on one replica; of one replica's part for all_gather.
      nbytes: Size S of the bandwidth formulas.
      result_bytes: Bytes of its result on one replica.
    """

    op: str
    redop: str
    dtype: str
    count: int
    nbytes: int
    result_bytes: int


def operations(text: str, replicas: int) -> dict[str, Operation]:
    """The collectives in compiled HLO by their name, such as "psum.7".

    Args:
      text: The result of `compiled.as_text()`.
      replicas: The number of devices that it runs on.
    """
    return {
        found["name"]: _operation(found, text, replicas)
        for line in text.splitlines()
        if any(kind in line for kind in _KINDS) and (found := _COLLECTIVE.search(line)) is not None
    }


def _operation(found: re.Match[str], text: str, replicas: int) -> Operation:
    op = found["kind"].replace("-", "_")
    names, count, nbytes = set(), 0, 0
    for name, extent in _SHAPE.findall(found["shapes"]):
        elements = int(np.prod([int(n) for n in extent.split(",") if n], dtype=np.int64))
        names.add(_dtype(name))
        count += elements
        nbytes += elements * _bits(name) // 8
    applied = re.search(r"to_apply=%([\w.-]+)", found["rest"])
    function = _function(text, applied[1]) if applied else ""
    return Operation(
        op=op,
        redop=_REDUCTIONS.get(function, ""),
        dtype=names.pop() if len(names) == 1 else "mixed",
        count=count // replicas if op == "all_gather" else count,
        nbytes=nbytes * replicas if op == "reduce_scatter" else nbytes,
        result_bytes=nbytes,
    )


def _function(text: str, computation: str) -> str:
    """What a computation such as "%region_0.7 (a: f32[], b: f32[]) -> f32[] { … ROOT %add = f32[] add(…) }" does."""
    root = re.search(rf"^%{re.escape(computation)} \(.*?^  ROOT .*? ([a-z]+)\(", text, re.M | re.S)
    return root[1] if root else ""


def _bits(name: str) -> int:
    return _BITS.get(name) or int(re.sub(r"\D.*", "", name.lstrip("abcdefghijklmnopqrstuvwxyz")) or 8)


def _dtype(name: str) -> str:
    if name in _DTYPES:
        return _DTYPES[name]
    family, width = name[0], name[1:]
    return f"{_FAMILIES[family]}{width}" if family in _FAMILIES and width.isdigit() else name
