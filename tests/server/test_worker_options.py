"""What can be asked of the workers that the panel starts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.errors import InvalidArgumentError
from workbench.server.worker_options import MAX_REPLICAS, WorkerOptions, read


@pytest.mark.parametrize(
    ("body", "workers", "devices"),
    [
        ({"replicas": 3}, 3, 1),
        ({"replicas": 3, "maximum": 8}, 3, 1),
        ({"replicas": 3, "kind": "gpu"}, 3, 1),
        ({"replicas": 3, "threads": True}, 1, 3),
        ({"replicas": 3, "kind": "tpu", "memory_limit": "2 GiB"}, 1, 3),
    ],
)
def test_replicas_have_a_process_each_or_share_one(body: dict[str, Any], workers: int, devices: int) -> None:
    options = read(body)

    assert (options.workers, options.devices) == (workers, devices)
    assert read(json.loads(options.to_json())) == options == WorkerOptions(**body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "how many replicas"),
        ({"replicas": "2"}, "replicas must be a whole number, got '2'"),
        ({"replicas": True}, "replicas must be a whole number"),
        ({"replicas": 0}, f"between 1 and {MAX_REPLICAS}, got 0"),
        ({"replicas": 2, "host": "x"}, "no option 'host'; there are: replicas, maximum, kind"),
        ({"replicas": 2, "kind": "quantum"}, "one of cpu, gpu, tpu, got 'quantum'"),
        ({"replicas": 2, "threads": 1}, "threads must be true or false"),
        ({"replicas": 2, "threads": True, "kind": "gpu"}, "leave threads out"),
        ({"replicas": 4, "maximum": 2}, f"between 4 and {MAX_REPLICAS}, got 2"),
        ({"replicas": 4, "maximum": MAX_REPLICAS + 1}, f"between 4 and {MAX_REPLICAS}"),
        ({"replicas": 2, "maximum": 4, "threads": True}, "leave maximum out"),
        ({"replicas": 2, "maximum": 4, "kind": "tpu"}, "leave maximum out"),
        ({"replicas": 2, "memory_limit": "much"}, "memory_limit must be bytes"),
        ({"replicas": 2, "memory_limit": "1e400"}, "memory_limit must be bytes"),
        ({"replicas": 2, "memory_limit": "-1GB"}, "memory_limit cannot be negative"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(body: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said.replace("(", r"\(")):
        read(body)
