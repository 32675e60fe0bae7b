"""Kinds about device specs and device scopes."""

from __future__ import annotations

import contextlib
from typing import Any

from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.world import World
from tests.reference.observation import Observed
from tests.reference.outcomes import api

_FIELDS = ("job", "replica", "task", "device_type", "device_index")


def device_spec_parse(given: Json, world: World, observed: Observed) -> None:
    observed.fields |= _described(api("DeviceSpec").from_string(given["string"]))


def device_spec_construct(given: Json, world: World, observed: Observed) -> None:
    observed.phase = "construct"
    observed.fields |= _described(_spec(given["fields"]))


def device_spec_merge(given: Json, world: World, observed: Observed) -> None:
    merged, *others = [_spec(spec) for spec in given["specs"]]
    for other in others:
        merged = merged.make_merged_spec(other)
    observed.fields |= _described(merged)


def device_spec_replace(given: Json, world: World, observed: Observed) -> None:
    observed.fields |= _described(_spec(given["spec"]).replace(**given["fields"]))


def device_spec_equal(given: Json, world: World, observed: Observed) -> None:
    a, b = (_spec(given[name]) for name in ("a", "b"))
    observed.fields |= {"equal": a == b, "not_equal": a != b, "same_hash": hash(a) == hash(b)}


def device_spec_mutate(given: Json, world: World, observed: Observed) -> None:
    spec = _spec(given["spec"])
    if given["how"] == "setattr":
        setattr(spec, given["name"], given["value"])
        observed.fields |= {"original": _described(spec), "returned": None}
    else:
        returned = getattr(spec, given["how"])(given["value"])
        observed.fields |= {"original": _described(spec), "returned": _described(returned)}


def device_scope(given: Json, world: World, observed: Observed) -> None:
    with contextlib.ExitStack() as stack:
        for scope in given["scopes"]:
            stack.enter_context(api("device")(_scope(scope)))
        # An empty scope changes nothing, and returns the description that is valid inside of all scopes.
        observed.fields["device"] = stack.enter_context(api("device")("")).to_string()


def device_scope_eager(given: Json, world: World, observed: Observed) -> None:
    world.clusters.local()  # the recorded runs also had eight logical CPUs
    with contextlib.ExitStack() as stack:
        for scope in given["scopes"]:
            stack.enter_context(api("device")(_scope(scope)))
        observed.fields["device"] = api("Variable")(0.0).device


def _scope(scope: Json) -> Any:
    match scope:
        case {"spec": fields}:
            return _spec(fields)
        case {"function": _}:
            return lambda op: "CPU:0"
        case _:
            return scope


def _spec(value: Json) -> Any:
    match value:
        case {"py": plain}:
            return plain
        case dict():
            return api("DeviceSpec")(**value)
        case _:
            return api("DeviceSpec").from_string(value)


def _described(spec: Any) -> dict[str, Any]:
    return {**{name: getattr(spec, name) for name in _FIELDS}, "to_string": spec.to_string()}


KINDS = {
    fn.__name__: fn
    for fn in (
        device_spec_parse,
        device_spec_construct,
        device_spec_merge,
        device_spec_replace,
        device_spec_equal,
        device_spec_mutate,
        device_scope,
        device_scope_eager,
    )
}
