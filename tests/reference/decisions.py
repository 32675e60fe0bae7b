"""Where workbench decides against the recorded run; the guide (`explanation/decisions.md`) has the reasons."""

from __future__ import annotations

from typing import Any

from tests.reference.interpreter.codec import Json

_RECORD_COMPRESSIONS = (None, "", "GZIP", "ZLIB")


def decided(given: Json, expected: Json) -> Json:
    """What is expected of the input `given`, after our own decisions."""
    if given["kind"] == "resolver":
        return _renamed(expected, _pod_addresses(given["resolver"]))
    if given["kind"] == "coordinator_program" and any("args=(r,)" in line for line in given["code"]):
        # The reference does not accept a scheduled function's result as an argument of another one.
        return {"result": {"t": "int32", "s": [], "v": 3}}
    if any(_unknown_compression(step) for step in given.get("pipeline", ())):
        # The reference reads such files as if they were not compressed.
        return {"error": {"kind": "InvalidArgumentError"}}
    return expected


def _pod_addresses(resolver: Json) -> dict[str, str]:
    """Host address -> pod address, because pods are addressed by their own IP, as documented."""
    if not isinstance(resolver, dict) or resolver.get("type") != "Kubernetes":
        return {}
    pods = [pod for found in resolver["pods"].values() for pod in found]
    return {pod["host_ip"]: pod["pod_ip"] for pod in pods}


def _unknown_compression(step: Json) -> bool:
    return step["op"] == "TFRecordDataset" and step.get("compression_type") not in _RECORD_COMPRESSIONS


def _renamed(value: Json, names: dict[str, str]) -> Any:
    match value:
        case str():
            for old, new in names.items():
                value = value.replace(old, new)
            return value
        case list():
            return [_renamed(item, names) for item in value]
        case dict():
            return {key: _renamed(item, names) for key, item in value.items()}
        case _:
            return value
