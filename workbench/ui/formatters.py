"""The HTML of clusters, strategies, values and variables, and its registration in a notebook.

The classes do not know about their HTML: IPython learns by name which function draws which class, so that nothing is
imported before there is something to draw. Drawing uses only what this process already knows; nothing is fetched.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from workbench.ui.render import html
from workbench.ui.render.text_table import MAX_ROWS, odd_first

if TYPE_CHECKING:
    from workbench.data.explanation import InputExplanation
    from workbench.data.service.dispatcher import DispatchServer
    from workbench.data.service.overview import ServiceStatus
    from workbench.data.service.roles import Service
    from workbench.data.sharding.model import Sharding
    from workbench.distribute.coordinator.cluster_coordinator import ClusterCoordinator
    from workbench.distribute.input.distributed_dataset import DistributedDataset
    from workbench.distribute.servers.overview import ServersStatus
    from workbench.distribute.strategies.parameter_server import ParameterServerStrategy
    from workbench.distribute.strategies.strategy import Strategy
    from workbench.distribute.values.distributed_values import DistributedValues
    from workbench.distribute.variables.variable import Variable
    from workbench.runtime.cluster import Cluster
    from workbench.ui.widgets.bundle import Bundle

DRAWN: Final = (
    ("workbench.runtime.cluster", "Cluster", "cluster_html"),
    ("workbench.distribute.strategies.strategy", "Strategy", "strategy_html"),
    ("workbench.distribute.strategies.parameter_server", "ParameterServerStrategy", "servers_html"),
    ("workbench.distribute.coordinator.cluster_coordinator", "ClusterCoordinator", "coordinator_html"),
    ("workbench.distribute.servers.overview", "ServersStatus", "servers_status_html"),
    ("workbench.distribute.values.distributed_values", "DistributedValues", "values_html"),
    ("workbench.distribute.variables.variable", "Variable", "variable_html"),
    ("workbench.distribute.input.distributed_dataset", "DistributedDataset", "distributed_dataset_html"),
)
"""Module and name of a class, and the function below that draws it and its subclasses."""
LIVE: Final = (
    ("workbench.runtime.cluster", "Cluster", "cluster_bundle"),
    ("workbench.distribute.strategies.strategy", "Strategy", "strategy_bundle"),
    ("workbench.distribute.strategies.parameter_server", "ParameterServerStrategy", "servers_bundle"),
    ("workbench.distribute.coordinator.cluster_coordinator", "ClusterCoordinator", "coordinator_bundle"),
    ("workbench.distribute.servers.overview", "ServersStatus", "servers_status_bundle"),
    ("workbench.distribute.values.distributed_values", "DistributedValues", "values_bundle"),
    ("workbench.distribute.variables.variable", "Variable", "variable_bundle"),
    ("workbench.distribute.input.distributed_dataset", "DistributedDataset", "distributed_dataset_bundle"),
    ("workbench.data.sharding.model", "Sharding", "sharding_bundle"),
    ("workbench.data.explanation", "InputExplanation", "input_bundle"),
    ("workbench.data.service.roles", "Service", "data_service_bundle"),
    ("workbench.data.service.dispatcher", "DispatchServer", "dispatcher_bundle"),
    ("workbench.data.service.overview", "ServiceStatus", "service_status_bundle"),
)
"""The same for classes with a live view; without a kernel, they print this, too."""
_PATIENCE_SECONDS: Final = 0.5


def register(html_formatter: Any) -> None:
    """Tells IPython's formatter of "text/html" what to draw."""
    for module, name, function in DRAWN:
        html_formatter.for_type_by_name(module, name, globals()[function])


def register_live(mimebundle_formatter: Any) -> None:
    """Tells IPython which objects have a live view beside their text and HTML."""
    for module, name, function in LIVE:
        mimebundle_formatter.for_type_by_name(module, name, globals()[function])


def bundle_of(shown: Any, include: Any = None) -> dict[str, Any]:
    """What a notebook shows for an object.

    Args:
      shown: An object of a class in `LIVE`, or one that can show itself.
      include: The formats that IPython requests.

    Raises:
      TypeError: if it is neither.
    """
    drawn = {(module, name): function for module, name, function in LIVE}
    for base in type(shown).__mro__:
        if function := drawn.get((base.__module__, base.__qualname__)):
            return _formats(globals()[function](shown, include))
    if not hasattr(shown, "_repr_mimebundle_"):
        raise TypeError(
            f"{type(shown).__name__} has no view: show what wb.collectives(), wb.inspect(value) and such give"
        )
    return _formats(shown._repr_mimebundle_(include))


def _formats(bundle: Bundle) -> dict[str, Any]:
    """The formats of a bundle that may have metadata beside them."""
    return bundle[0] if isinstance(bundle, tuple) else bundle


def cluster_bundle(cluster: Cluster, include: Any = None, exclude: Any = None) -> Bundle:
    """A cluster: its topology."""
    return _topology_bundle(cluster, repr(cluster), cluster_html(cluster), include)


def strategy_bundle(strategy: Strategy, include: Any = None, exclude: Any = None) -> Bundle:
    """A strategy: the topology of its cluster."""
    cluster = None if strategy.is_default else strategy.gang.cluster
    text, html_ = repr(strategy), strategy_html(strategy)
    if cluster is None:
        return {"text/plain": text, "text/html": html_}
    return _topology_bundle(cluster, text, html_, include)


def _topology_bundle(cluster: Cluster, text: str, html_: str, include: Any) -> Bundle:
    from workbench.ui.cluster.cluster_views import topology_source
    from workbench.ui.widgets.bundle import mimebundle

    return mimebundle(topology_source(cluster), text=text, html=html_, include=include)


def sharding_bundle(sharding: Sharding, include: Any = None, exclude: Any = None) -> Bundle:
    """A dataset's sharding: which replica reads what at which step."""
    from workbench.ui.sharding.explain_sharding import dataset_source
    from workbench.ui.widgets.bundle import mimebundle

    texts = sharding._repr_mimebundle_()
    return mimebundle(
        dataset_source(sharding), text=texts["text/plain"], html=texts["text/html"], include=include
    )


def input_bundle(explained: InputExplanation, include: Any = None, exclude: Any = None) -> Bundle:
    """What input pipelines cost: their stages as a flow."""
    from workbench.ui.widgets.bundle import mimebundle
    from workbench.ui.widgets.live_sources import input_source

    texts = explained._repr_mimebundle_()
    return mimebundle(
        input_source(explained), text=texts["text/plain"], html=texts["text/html"], include=include
    )


def data_service_bundle(service: Service, include: Any = None, exclude: Any = None) -> Bundle:
    """A data service: its jobs and workers."""
    from workbench.ui.widgets.bundle import mimebundle
    from workbench.ui.widgets.live_sources import data_service_source

    text, html_ = repr(service), service._repr_html_()
    return mimebundle(data_service_source(service.watched), text=text, html=html_, include=include)


def dispatcher_bundle(server: DispatchServer, include: Any = None, exclude: Any = None) -> Bundle | None:
    """A dispatcher: its jobs and workers; before it was started, only its text."""
    from workbench.errors import FailedPreconditionError
    from workbench.ui.widgets.bundle import mimebundle
    from workbench.ui.widgets.live_sources import data_service_source

    try:
        watched = server.watched
    except FailedPreconditionError:
        return None
    html_ = watched.now()._repr_html_()
    return mimebundle(data_service_source(watched), text=repr(server), html=html_, include=include)


def service_status_bundle(status: ServiceStatus, include: Any = None, exclude: Any = None) -> Bundle:
    """What a data service did at the time of the call."""
    from workbench.ui.widgets.bundle import mimebundle
    from workbench.ui.widgets.sources import Fixed

    return mimebundle(
        Fixed("data_service", status), text=str(status), html=status._repr_html_(), include=include
    )


def servers_bundle(strategy: ParameterServerStrategy, include: Any = None, exclude: Any = None) -> Bundle:
    """A strategy with parameter servers: what they hold, and what runs."""
    from workbench.ui.widgets.bundle import mimebundle
    from workbench.ui.widgets.live_sources import servers_source

    if strategy.stands_for_another:
        return {"text/plain": repr(strategy)}
    watched = strategy.hosting.watched
    now = watched.now()
    return mimebundle(
        servers_source(watched),
        text=f"{strategy!r}\n{now}",
        html=_servers_html(strategy, now),
        include=include,
    )


def coordinator_bundle(coordinator: ClusterCoordinator, include: Any = None, exclude: Any = None) -> Bundle:
    """A coordinator: what its workers run, and the servers."""
    return servers_bundle(coordinator.strategy, include)


def servers_status_bundle(status: ServersStatus, include: Any = None, exclude: Any = None) -> Bundle:
    """The state of parameter servers at the time of the call."""
    from workbench.ui.widgets.bundle import mimebundle
    from workbench.ui.widgets.sources import Fixed

    return mimebundle(
        Fixed("servers", status), text=str(status), html=servers_status_html(status), include=include
    )


def values_bundle(value: DistributedValues, include: Any = None, exclude: Any = None) -> Bundle:
    """A PerReplica or Mirrored: facts about its components."""
    return _looked_at(value, repr(value), values_html(value), include)


def variable_bundle(variable: Variable, include: Any = None, exclude: Any = None) -> Bundle:
    """A variable: facts about its components."""
    return _looked_at(variable, repr(variable), variable_html(variable), include)


def _looked_at(value: Any, text: str, html_: str, include: Any) -> Bundle:
    """Adds the view of values, but only if it can be seen, because it queries the replicas."""
    from workbench.errors import WorkbenchError
    from workbench.ui.inspect.inspection import inspection_of, name_among
    from workbench.ui.widgets.bundle import is_drawn, mimebundle

    texts = {"text/plain": text, "text/html": html_}
    if not is_drawn(include):
        return texts
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    name = "" if shell is None else name_among(value, shell.user_ns)
    try:
        found = inspection_of(value, name)
    except WorkbenchError:  # the step that creates it has failed, which the cell shows
        return texts
    return mimebundle(found.source(), text=text, html=html_, include=include)


def distributed_dataset_bundle(
    dataset: DistributedDataset, include: Any = None, exclude: Any = None
) -> Bundle:
    """A distributed dataset: which replica reads what at which step, as far as this is quickly found."""
    from workbench.errors import WorkbenchError
    from workbench.ui.sharding.explain_sharding import dataset_source, explain_distributed
    from workbench.ui.widgets.bundle import is_drawn, mimebundle

    text, html_ = repr(dataset), distributed_dataset_html(dataset)
    texts = {"text/plain": text, "text/html": html_}
    if not is_drawn(include):
        return texts
    try:
        sharding = explain_distributed(dataset, max_seconds=_PATIENCE_SECONDS)
    except (
        WorkbenchError,
        ValueError,
        TypeError,
        OSError,
    ):  # from the pipeline: reading will show it
        return texts
    return mimebundle(dataset_source(sharding), text=text, html=html_, include=include)


def cluster_html(cluster: Cluster) -> str:
    """A cluster: its workers, host by host."""
    from workbench.runtime.placement_text import placement
    from workbench.ui.cluster.cluster_model import busy_replicas

    groups = list(cluster.gang.groups.values())
    rows = [
        [
            worker.host,
            worker.name,
            str(worker.pid),
            str(worker.device_count),
            str(worker.lost or next(iter(busy_replicas(worker, groups).values()), "idle")),
        ]
        for worker in odd_first(list(cluster.gang.workers.values()), lambda worker: worker.lost)
    ]
    facts = [
        placement(cluster.devices, "device"),
        *(["embedded"] if cluster.embedded else []),
        f"run {cluster.name}",
    ]
    parts = _table(["host", "worker", "pid", "devices", "now"], rows, left=2)
    return html.card("Cluster", facts, word=cluster.status, parts=parts)


def strategy_html(strategy: Strategy) -> str:
    """A strategy: its replicas, and what they do."""
    from workbench.runtime.placement_text import counted, placement, transport
    from workbench.ui.cluster.cluster_model import busy_replicas

    name = type(strategy).__name__
    facts = [placement(strategy.devices, "replica")]
    if strategy.is_default:
        return html.card(name, facts)
    group = strategy.group
    if how := transport(strategy.devices):
        facts.append(f"all_reduce: {how}")
    if group.generation > 1:
        facts.append(f"generation {group.generation}")
    if strategy.variables:
        central = strategy.description.parameter_device
        facts.append(
            counted(len(strategy.variables), "variable") + (f" on {central.short}" if central else "")
        )
    rows = []
    ranks = odd_first(range(len(strategy.devices)), lambda rank: group.place(rank)[0].lost)
    for rank in ranks[:MAX_ROWS]:
        device, (worker, _) = strategy.devices[rank], group.place(rank)
        now = str(worker.lost or busy_replicas(worker, [group]).get((group.id, rank), "idle"))
        rows.append([str(rank), device.host, device.short.lower(), now])
    hidden = len(strategy.devices) - len(rows)
    parts = _table(["replica", "host", "device", "now"], rows, left=4, hidden=hidden)
    return html.card(name, facts, word=group.status, parts=parts)


def servers_html(strategy: ParameterServerStrategy) -> str:
    """A strategy with parameter servers: what they hold, and what runs."""
    if strategy.stands_for_another:
        return html.card(type(strategy).__name__, ["on a worker"])
    return _servers_html(strategy, strategy.status())


def coordinator_html(coordinator: ClusterCoordinator) -> str:
    """A coordinator: what its workers run, and the servers."""
    return servers_html(coordinator.strategy)


def servers_status_html(status: ServersStatus) -> str:
    """The state of parameter servers at the time of the call."""
    return _status_card("Servers", [], status)


def _servers_html(strategy: ParameterServerStrategy, now: ServersStatus) -> str:
    from workbench.runtime.placement_text import counted

    return _status_card(type(strategy).__name__, [counted(len(strategy.hosting.workers), "worker")], now)


def _status_card(title: str, facts: list[str], now: ServersStatus) -> str:
    advice = [html.alert(f"{now.advice[0].upper()}{now.advice[1:]}.")] if now.advice else []
    tables = [part for head, *rows in now.tables() for part in _table(head, rows, left=2)]
    return html.card(title, [*facts, now.sentence], word=now.status, parts=[*advice, *tables])


def values_html(value: DistributedValues) -> str:
    """A PerReplica or Mirrored: each component in words, or in full if it is small and in the notebook."""
    name = type(value).__name__
    handle = value.handle
    if handle is not None and not handle.ready:
        return html.card(name, [f"{len(value)} components", "being computed"])
    rows = []
    for rank in range(min(len(value), MAX_ROWS)):
        place = ""
        if handle is not None:
            device = handle.group.devices[rank]
            place = f"{device.host}:{device.short.lower()}"
        rows.append([str(rank), place, value.component_text(rank)])
    hidden = len(value) - len(rows)
    return html.card(
        name,
        [f"{len(value)} components"],
        parts=_table(["replica", "host:device", "value"], rows, left=3, hidden=hidden),
    )


def variable_html(variable: Variable) -> str:
    """A variable: all but its values."""
    description = variable.description
    facts = [f"{description.dtype.name} ({','.join(map(str, description.shape))})"]
    if variable.strategy is None:
        return html.card(f"Variable {variable.name!r}", facts, parts=[html.preformatted(repr(variable))])
    facts.append(variable.whereabouts)
    if description.aggregation.name != "NONE":
        facts.append(f"aggregation {description.aggregation.name}")
    if not description.trainable:
        facts.append("not trainable")
    return html.card(f"{variable.kind} {variable.name!r}", facts)


def distributed_dataset_html(dataset: DistributedDataset) -> str:
    """A distributed dataset: one row per input pipeline."""
    rows = []
    for host, pipeline in enumerate(dataset.pipelines):
        choice = pipeline.choice
        policy = "" if choice is None else f"{choice} ({choice.reason})"
        rows.append(
            [str(host), str(pipeline.replicas), policy, pipeline.algorithm, str(pipeline.element_spec)]
        )
    headings = ["pipeline", "replicas", "policy", "split", "each replica gets"]
    return html.card("DistributedDataset", parts=_table(headings, rows, left=len(headings)))


def _table(headings: list[str], rows: list[list[str]], *, left: int, hidden: int = 0) -> list[str]:
    shown = rows[:MAX_ROWS]
    hidden += len(rows) - len(shown)
    return [html.table(headings, shown, left=left, caption=f"… {hidden} more not shown" if hidden else "")]
