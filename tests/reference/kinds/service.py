"""The kind `data_service`: a pipeline read through a dispatcher and its workers."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from tests.reference.interpreter.codec import Json
from tests.reference.interpreter.pipelines import apply_steps, build
from tests.reference.interpreter.world import World
from tests.reference.kinds.pipelines import cardinality
from tests.reference.observation import Observed
from tests.reference.outcomes import api

_SERVICE = "data.experimental.service"


def data_service(given: Json, world: World, observed: Observed) -> None:
    with contextlib.ExitStack() as stack:
        dispatcher = api(f"{_SERVICE}.DispatchServer")()
        stack.callback(dispatcher.stop)
        address = dispatcher.target.partition("://")[2]
        for _ in range(given["workers"]):
            config = api(f"{_SERVICE}.WorkerConfig")(dispatcher_address=address)
            stack.callback(api(f"{_SERVICE}.WorkerServer")(config).stop)
        observed.fields["target_has_protocol"] = "://" in dispatcher.target
        observed.phase = "build"
        dataset = _distributed(given, build(given["pipeline"], world.scratch), dispatcher.target, observed)
        dataset = apply_steps(dataset, given.get("post", []), world.scratch)
        observed.fields["element_spec"] = dataset.element_spec
        observed.fields["cardinality"] = cardinality(dataset)
        observed.phase = "iterate"
        observed.fields["epochs_sorted"] = [sorted(_plain(element) for element in dataset)]


def _distributed(given: Json, dataset: Any, target: str, observed: Observed) -> Any:
    mode, service = given["processing_mode"], given.get("service", target)
    names = ("job_name", "max_outstanding_requests")
    options = {name: given[name] for name in names if name in given}
    if given.get("via") != "register":
        return dataset.apply(api(f"{_SERVICE}.distribute")(mode, service, **options))
    register = api(f"{_SERVICE}.register_dataset")
    ids = [int(register(service, dataset)) for _ in range(2)]
    observed.fields["registering_twice_gives_same_id"] = ids[0] == ids[1]
    spec = dataset.element_spec
    return api(f"{_SERVICE}.from_dataset_id")(mode, service, ids[0], element_spec=spec, **options)


def _plain(element: Any) -> Any:
    value = element.item() if isinstance(element, np.ndarray | np.generic) else element
    return value.decode() if isinstance(value, bytes) else value


KINDS = {"data_service": data_service}
