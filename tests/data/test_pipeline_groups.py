"""Input pipelines of many hosts: equal ones are one flow, and those that stand out are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from workbench.data.cost.flow import InputFlow, PipelineFlow, pipeline_flow, replica_waits
from workbench.data.cost.profile import PipelineProfile, QueueProfile, StageProfile
from workbench.data.explanation import InputExplanation, input_flow

ELAPSED_SECONDS = 10.0


def pipeline(
    host: int, parse_seconds: float = 4.0, more: Sequence[str] = (), fill: float = 4.0
) -> PipelineFlow:
    stages = (
        StageProfile("text lines", 4000 + host, own_seconds=0.3),
        *(StageProfile(name, 4000, own_seconds=0.1) for name in more),
        StageProfile("map(parse)", 4000, own_seconds=parse_seconds),
        StageProfile("prefetch", 100 + host, queue=QueueProfile(8, fills=int(100 * fill), looks=100)),
    )
    return pipeline_flow(PipelineProfile(stages, ELAPSED_SECONDS), host=host, name=f"host {host}")


def flow_of(
    hosts: int, odd: Mapping[int, PipelineFlow] | None = None, waited: Mapping[int, float] | None = None
) -> InputFlow:
    """Hosts that differ a little, but for `odd` ones; their replicas wait half a second, or as `waited` says."""
    noise = np.random.default_rng(hosts).normal(1, 0.05, hosts)
    pipelines = [(odd or {}).get(host) or pipeline(host, 4 * noise[host]) for host in range(hosts)]
    waits = [(waited or {}).get(host, 0.5) for host in range(hosts)]
    return input_flow(
        pipelines, replica_waits(waits, range(hosts), ELAPSED_SECONDS), elapsed_seconds=ELAPSED_SECONDS
    )


def shown(flow: InputFlow) -> list[tuple[str, str]]:
    return [(pipeline.name, pipeline.why) for pipeline in flow.pipelines]


@pytest.mark.parametrize("hosts", [5, 8, 64, 512])
def test_equal_hosts_are_one_flow_of_medians_and_ranges(hosts: int) -> None:
    flow = flow_of(hosts)

    (group,) = flow.pipelines
    assert (group.name, group.why, flow.hidden_pipelines) == (f"{hosts} hosts", "", 0)
    assert group.hosts == tuple(f"host {host}" for host in range(hosts))
    assert group.rates == tuple((100 + host) / ELAPSED_SECONDS for host in range(hosts))
    assert group.elements_per_second == float(np.median(group.rates))
    assert group.ranges[0].elements_per_second == (400.0, (4000 + hosts - 1) / ELAPSED_SECONDS)
    assert group.stages[1].busy_share == pytest.approx(0.4, rel=0.1)
    low, high = group.ranges[1].busy_share
    assert low < group.stages[1].busy_share < high
    assert group.bottleneck == 1
    assert np.median(group.busy_percent) == pytest.approx(100 * group.stages[1].busy_share, abs=0.1)


def test_few_hosts_are_shown_one_by_one() -> None:
    assert shown(flow_of(4)) == [(f"host {host}", "") for host in range(4)]


def test_hosts_that_stand_out_come_first_and_say_why() -> None:
    odd = {17: pipeline(17, 9.4), 30: pipeline(30, more=["shuffle(10)"])}

    flow = flow_of(512, odd, {99: 4.0})

    assert shown(flow) == [
        ("host 99", "replica 99 starves"),
        ("host 17", "slow map(parse)"),
        ("host 30", "another plan"),
        ("509 other hosts", ""),
    ]
    assert not set(flow.pipelines[-1].hosts) & {"host 99", "host 17", "host 30"}


def test_replicas_that_all_starve_do_not_stand_out() -> None:
    assert shown(flow_of(64, waited=dict.fromkeys(range(64), 6.0))) == [("64 hosts", "")]


def test_a_host_that_is_slow_and_starves_is_shown_once() -> None:
    assert shown(flow_of(9, {3: pipeline(3, 9.4)}, {3: 5.0})) == [
        ("host 3", "replica 3 starves"),
        ("8 other hosts", ""),
    ]


def test_hosts_with_the_same_other_plan_are_one_flow() -> None:
    odd = {host: pipeline(host, more=["shuffle(10)"]) for host in range(0, 60, 3)}

    assert shown(flow_of(60, odd)) == [("40 hosts", ""), ("20 hosts", "another plan")]


@pytest.mark.parametrize("seed", range(3))
def test_no_more_than_six_flows_stand_for_whatever_there_is(seed: int) -> None:
    random = np.random.default_rng(seed)
    odd = {
        host: pipeline(host, random.uniform(1, 10), [f"shuffle({plan})"])
        for host, plan in enumerate(random.integers(0, 12, 300).tolist())
    }

    flow = flow_of(512, odd, {int(host): 5.0 for host in random.integers(0, 512, 20)})

    told = sum(max(1, len(one.hosts)) for one in flow.pipelines) + flow.hidden_pipelines
    assert (len(flow.pipelines), told) == (6, 512)


def test_healthy_hosts_are_not_said_to_be_slow() -> None:
    for seed in range(200):
        noise = np.random.default_rng(seed).normal(1, 0.08, 64)
        pipelines = [pipeline(host, 4 * noise[host]) for host in range(64)]
        assert shown(input_flow(pipelines, elapsed_seconds=ELAPSED_SECONDS)) == [("64 hosts", "")]


def test_the_text_has_a_table_for_each_flow() -> None:
    queues = {host: pipeline(host, fill=host / 64) for host in range(512)}
    text = repr(InputExplanation(flow_of(512, queues | {17: pipeline(17, 9.4)})))

    lines = text.splitlines()
    assert lines[0] == "Input of 512 hosts: measured, 10 s"
    assert "host 17, slow map(parse), 1 process" in lines
    assert "511 other hosts, 511 processes, medians" in lines
    assert "400 to 451" in text
    assert "0 to 7.98 of 8" in text
    assert len(lines) < 25
    assert max(map(len, lines)) <= 88


def test_html_has_a_column_of_ranges_only_where_hosts_are_grouped() -> None:
    def html(flow: InputFlow) -> str:
        return InputExplanation(flow)._repr_html_()

    assert "<caption>5 hosts, 5 processes, medians</caption>" in html(flow_of(5))
    assert ">range</th>" in html(flow_of(5))
    assert ">range</th>" not in html(flow_of(4))


def test_a_host_without_elements_is_no_reason_to_fail() -> None:
    empty = pipeline_flow(PipelineProfile((StageProfile("range", 0),), 0.0), host=1, name="host 1")
    odd = {host: replace(empty, host=host, name=f"host {host}") for host in range(6)}

    assert shown(flow_of(6, odd)) == [("6 hosts", "")]
