"""Texts of many parameter servers, of workers of a data service, and of parts of an array: no longer than of a few, and
what stands out comes first."""

from __future__ import annotations

from dataclasses import replace

from tests.extension.record import parameter_servers, services
from workbench.ui.models.sharding import ArrayPart, ArraySharding
from workbench.ui.sharding.explain_sharding import ArrayShardingView


def test_of_many_servers_and_workers_the_lost_ones_come_first() -> None:
    few = parameter_servers()["servers_live"]
    servers = [replace(few.servers[0], name=f"ps:{at}") for at in range(64)]
    servers[50] = replace(servers[50], state="lost", detail="killed")
    workers = [replace(few.workers[0], name=f"worker:{at}") for at in range(512)]
    workers[400] = replace(workers[400], state="lost", detail="killed")
    many = replace(few, servers=tuple(servers), workers=tuple(workers))

    of_servers, _, of_workers, _ = many.tables()
    assert [row[0] for row in of_servers[1:3]] == ["ps:50", "ps:0"]
    assert [row[0] for row in of_workers[1:3]] == ["worker:400", "worker:0"]
    assert of_servers[-1][0] == "32 more"
    assert of_workers[-1][0] == "480 more"
    assert len(str(many).splitlines()) < 220


def test_a_few_servers_are_listed_by_number() -> None:
    of_servers, _, of_workers, _ = parameter_servers()["servers_lost"].tables()
    assert [row[0] for row in of_servers[1:]] == ["ps:0", "ps:1"]
    assert [row[0] for row in of_workers[1:]] == ["worker:0", "worker:1", "worker:2"]


def test_of_many_workers_of_a_data_service_the_slowest_come_first() -> None:
    few = services()["service_live"]
    workers = [
        replace(few.workers[0], address=f"host-{at}:5000", elements_per_second=100.0 + at % 7)
        for at in range(64)
    ]
    workers[60] = replace(workers[60], elements_per_second=1.0)
    lines = str(replace(few, workers=tuple(workers))).splitlines()
    table = lines[next(at for at, line in enumerate(lines) if line.startswith("worker")) :]
    assert table[1].startswith("host-60:5000")
    assert table[-1].split() == ["32", "more"]
    assert str(few).splitlines()[-1].startswith(few.workers[1].address)


def test_of_many_parts_of_an_array_those_of_unusual_size_come_first() -> None:
    parts = [ArrayPart(at, "a", f"cpu:{at}", (at,), (at + 1,), 4) for at in range(63)]
    parts.append(ArrayPart(63, "a", "cpu:63", (63,), (80,), 68))
    view = ArrayShardingView(
        ArraySharding("x", "PerReplica", (80,), "float32", tuple(parts), 320, 0.0, "split")
    )
    lines = repr(view).splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["63", "0"]
    assert lines[-1].split() == ["…", "32", "more"]
