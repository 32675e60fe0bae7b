// Hosts, their workers, devices and replicas, and what each does now. Of more than 32 devices only the telling ones are
// drawn, small, and all of them are counted by what they do.
import { ChartOrTable } from "../parts/head";
import { QUIET, StatusWord } from "../parts/status";
import { ReplicaName } from "../parts/marks";
import { named, numeric, selecting, Table, type Column } from "../parts/table";
import { groupText, wording } from "../parts/terms";
import { count, counted, memoryText, NOTHING, joined, sumOf } from "../format";
import type { DeviceNode, HostNode, ReplicaNode, Topology, WorkerNode } from "../models";
import type { Context, View } from "../view";
import { Button, Fact, Note, Quiet } from "../parts/small";

const MAX_DEVICES = 32;
const MAX_REPLICAS = 8;
/** More devices than these stand beside one another, not only below. */
const NARROW = 8;
const MAX_DOINGS = 6;

export const topology: View<Topology> = {
  title: "Topology",
  draw({ model: told, context }) {
    const model = told.status === "stopped" ? ended(told) : told;
    const workers = model.hosts.flatMap((host) => host.workers);
    const devices = workers.flatMap((worker) => worker.devices);
    const kinds = [...new Set(devices.map((device) => device.kind))].join(" and ");
    const shown = telling(workers, context.selected.replica);
    const many = devices.length > MAX_DEVICES;
    const drawn = devices.filter((device) => shown.has(device)).length;
    const hosts = model.hosts.filter((host) => host.workers.some((worker) => shown.has(worker)));
    return (
      <ChartOrTable
        title="Topology"
        facts={[
          `${counted(devices.length, `${kinds} device`.trim())} on ${counted(model.hosts.length, "host")}`,
          wording("", `run ${model.run}`),
          model.status === "stopped" && "as it was last",
          devices.length > drawn && `${drawn} of ${count(devices.length)} devices drawn, lost ones first`,
        ]}
        status={model.status}
        chart={
          <>
            <Strategies {...model} />
            {many && <Doings devices={devices} />}
            <div class="wb-hosts" data-many={many || undefined}>
              {hosts.map((host) => (
                <Host key={host.name} host={host} shown={shown} context={context} />
              ))}
            </div>
            <More devices={devices} shown={shown} />
          </>
        }
        table={<Twin model={model} context={context} />}
      />
    );
  },
};

/** The last picture of a job that is gone: nothing of it lives any more, which only its head says. */
export function ended(told: Topology): Topology {
  const status = (was: string) => (was === "lost" ? was : "stopped");
  const did = (doing: string) => (doing === "idle" || doing === "stopped" ? "" : doing);
  const over = (replica: ReplicaNode) => ({ ...replica, busy: false, doing: did(replica.doing) });
  const hosts = told.hosts.map((host) => ({
    ...host,
    workers: host.workers.map((worker) => ({
      ...worker,
      status: status(worker.status),
      devices: worker.devices.map((device) => ({ ...device, replicas: device.replicas.map(over) })),
    })),
  }));
  const strategies = told.strategies.map((strategy) => ({ ...strategy, status: "stopped" }));
  return { ...told, hosts, strategies };
}

type Drawn = ReadonlySet<WorkerNode | DeviceNode>;
type Place = [WorkerNode, DeviceNode?];

/**
 * The workers and devices that are drawn: all, or of too many those that are lost, then the selected one, then those that
 * do something if few do; then the first ones, so that the picture does not move from one step to the next.
 */
export function telling(workers: readonly WorkerNode[], selected: number | null = null): Drawn {
  const places = workers.flatMap((worker): Place[] =>
    worker.devices.length ? worker.devices.map((device) => [worker, device]) : [[worker]],
  );
  const does = (device: DeviceNode | undefined) => device?.replicas.some((replica) => replica.busy) ?? false;
  const few = places.filter(([, device]) => does(device)).length <= MAX_DEVICES;
  const rank = ([worker, device]: Place) => {
    if (worker.status === "lost") return 0;
    if (device?.replicas.some((one) => one.replica === selected)) return 1;
    return few && does(device) ? 2 : 3;
  };
  const all = places.length <= MAX_DEVICES;
  const first = all ? places : [...places].sort((one, other) => rank(one) - rank(other));
  return new Set(
    first.slice(0, MAX_DEVICES).flatMap(([worker, device]) => (device ? [worker, device] : [worker])),
  );
}

/** What the replicas do that are not drawn. */
function More({ devices, shown }: { devices: readonly DeviceNode[]; shown: Drawn }) {
  const hidden = devices.filter((device) => !shown.has(device));
  if (!hidden.length) return null;
  const replicas = hidden.flatMap((device) => device.replicas);
  const busy = replicas.filter((replica) => replica.busy).length;
  const lost = replicas.filter((replica) => replica.doing === "lost").length;
  const idle = replicas.filter((replica) => replica.doing === "idle").length;
  const what = [
    lost && `✖ ${count(lost)} lost`,
    busy && `▶ ${count(busy)} busy`,
    idle && `${count(idle)} idle`,
  ];
  return <Note>{joined([`… and ${counted(hidden.length, "more device")}`, ...what])}, see the table</Note>;
}

/** What all replicas do, the most frequent first. */
function Doings({ devices }: { devices: readonly DeviceNode[] }) {
  const replicas = devices.flatMap((device) => device.replicas);
  const counts = new Map<string, number>();
  for (const { doing } of replicas) if (doing) counts.set(doing, (counts.get(doing) ?? 0) + 1);
  const kinds = [...counts].sort(([, one], [, other]) => other - one);
  const others = sumOf(kinds.slice(MAX_DOINGS), ([, number]) => number);
  if (!counts.size) return null;
  return (
    <dl class="wb-facts">
      {kinds.slice(0, MAX_DOINGS).map(([doing, number]) => (
        <Fact key={doing} name={counted(number, "replica")}>
          {doing}
        </Fact>
      ))}
      {others > 0 && <Fact name={counted(others, "replica")}>something else, see the table</Fact>}
    </dl>
  );
}

function Strategies({ strategies, status }: Topology) {
  return (
    <>
      {strategies.slice(0, MAX_REPLICAS).map((strategy) => (
        <dl class="wb-facts" key={strategy.label}>
          <Fact name="strategy">{strategy.label}</Fact>
          <Fact name="replicas">{strategy.replicas}</Fact>
          {strategy.transport && <Fact name="all_reduce">{strategy.transport}</Fact>}
          <Fact name="step">{strategy.step < 0 ? NOTHING : strategy.step}</Fact>
          {strategy.generation > 1 && <Fact name="generation">{strategy.generation}</Fact>}
          {strategy.status !== status && (
            <Fact name="status">
              <StatusWord word={strategy.status} />
            </Fact>
          )}
        </dl>
      ))}
    </>
  );
}

function Host({ host, shown, context }: { host: HostNode; shown: Drawn; context: Context }) {
  const here = host.workers.filter((worker) => shown.has(worker));
  return (
    <div class="wb-host" role="group" aria-label={`host ${host.name}`}>
      <div>
        <strong>{host.name}</strong> <Quiet>{counted(host.workers.length, "worker")}</Quiet>
      </div>
      <div class="wb-workers">
        {here.map((worker) => (
          <Worker key={worker.name} worker={worker} shown={shown} context={context} />
        ))}
      </div>
    </div>
  );
}

function Worker({ worker, shown, context }: { worker: WorkerNode; shown: Drawn; context: Context }) {
  const devices = worker.devices.filter((device) => shown.has(device));
  const facts = [`pid ${worker.pid}`, worker.memory_bytes === null ? "" : memoryText(worker.memory_bytes)];
  return (
    <div class="wb-worker" data-status={worker.status} data-wide={devices.length > NARROW || undefined}>
      <div>
        worker {worker.name} {!QUIET.has(worker.status) && <StatusWord word={worker.status} />}
      </div>
      <div class="wb-quiet">{worker.detail || joined(facts)}</div>
      <div class="wb-places">
        {devices.map((device) => (
          <Device key={device.name} device={device} context={context} />
        ))}
      </div>
    </div>
  );
}

function Device({ device, context }: { device: DeviceNode; context: Context }) {
  if (!device.replicas.length) {
    return <div class="wb-quiet">{device.name}: no replica</div>;
  }
  return (
    <div>
      {device.replicas.slice(0, MAX_REPLICAS).map((replica) => (
        <Button
          key={`${replica.group}|${replica.replica}`}
          class="wb-replica"
          aria-pressed={context.selected.replica === replica.replica}
          title={`${groupText(replica.group)}, replica ${replica.replica}${replica.doing && `: ${replica.doing}`}`}
          onClick={() => context.select(replica.replica)}
        >
          <ReplicaName replica={replica.replica} /> <Quiet>{device.name}</Quiet>
          <span class="wb-doing">
            {replica.busy ? "▶ " : replica.doing === "lost" ? "✖ " : ""}
            {replica.doing}
          </span>
        </Button>
      ))}
      {device.replicas.length > MAX_REPLICAS && (
        <div class="wb-quiet">… {device.replicas.length - MAX_REPLICAS} more on it</div>
      )}
    </div>
  );
}

interface Line {
  key: string;
  host: string;
  worker: WorkerNode;
  device: string;
  replica: ReplicaNode | null;
}

function Twin({ model, context }: { model: Topology; context: Context }) {
  const rows: Line[] = model.hosts.flatMap((host) =>
    host.workers.flatMap((worker) =>
      worker.devices.flatMap((device) =>
        (device.replicas.length ? device.replicas : [null]).map((replica) => ({
          key: `${worker.name}|${device.name}|${replica?.group}|${replica?.replica}`,
          host: host.name,
          worker,
          device: device.name,
          replica,
        })),
      ),
    ),
  );
  const columns: Column<Line>[] = [
    named("host", (line) => line.host, { rank: 3, least: 60 }),
    named("worker", (line) => line.worker.name, { least: 70 }),
    named("status", (line) => line.worker.status, { rank: 1 }),
    numeric("process", (line) => line.worker.pid, String, { rank: 7, term: "pid", help: "number of it" }),
    numeric("memory", (line) => line.worker.memory_bytes, memoryText, { rank: 4 }),
    numeric(
      "heartbeat",
      ({ worker }) => worker.heartbeat_age_seconds,
      (age) => `${age.toFixed(1)} s ago`,
      {
        help: "when it was last heard of",
        rank: 5,
      },
    ),
    named("device", (line) => line.device, { rank: 2 }),
    named("strategy", ({ replica }) => (replica ? groupText(replica.group) : NOTHING), {
      rank: 6,
      least: 80,
      help: "of the replica",
    }),
    numeric("replica", ({ replica }) => replica && replica.replica, count),
    named("now", (line) => line.replica?.doing || line.worker.detail || NOTHING, {
      least: 120,
      help: "what it does",
    }),
  ];
  return (
    <Table
      label="Hosts, workers, devices and replicas"
      columns={columns}
      rows={rows}
      keyOf={(line) => line.key}
      {...selecting(context, (line: Line) => line.replica?.replica ?? -1)}
    />
  );
}
