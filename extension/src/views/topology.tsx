// Hosts, their workers, devices and replicas, and what each does now. Above 32 workers only the telling ones are drawn.
import { ChartOrTable, StatusWord } from "../parts/head";
import { Table, type Column } from "../parts/table";
import { counted, memoryText, NOTHING } from "../format";
import type { DeviceNode, HostNode, ReplicaNode, StrategyNode, Topology, WorkerNode } from "../models";
import type { Context, View } from "../view";

const MAX_WORKERS = 32;
const MAX_REPLICAS = 8;

export const topology: View<Topology> = {
  title: "Topology",
  draw({ model: told, context }) {
    const model = told.status === "stopped" ? ended(told) : told;
    const workers = model.hosts.flatMap((host) => host.workers);
    const devices = workers.flatMap((worker) => worker.devices);
    const kinds = [...new Set(devices.map((device) => device.kind))].join(" and ");
    const shown = telling(workers);
    return (
      <ChartOrTable
        title="Cluster"
        facts={[
          `${counted(devices.length, `${kinds} device`.trim())} on ${counted(model.hosts.length, "host")}`,
          `run ${model.run}`,
          workers.length > shown.size &&
            `${shown.size} of ${workers.length} workers shown: lost and busy ones first`,
        ]}
        status={model.status}
        chart={
          <>
            <Strategies strategies={model.strategies} />
            <div class="wb-hosts">
              {model.hosts.map((host) => (
                <Host key={host.name} host={host} shown={shown} context={context} />
              ))}
            </div>
          </>
        }
        table={<Twin model={model} context={context} />}
      />
    );
  },
};

/** What a job has told last, when it is gone: nothing of it lives any more. */
export function ended(told: Topology): Topology {
  const status = (was: string) => (was === "lost" ? was : "stopped");
  const over = (replica: ReplicaNode) => ({ ...replica, busy: false, doing: "stopped" });
  const hosts = told.hosts.map((host) => ({
    ...host,
    workers: host.workers.map((worker) => ({
      ...worker,
      status: status(worker.status),
      memory_bytes: null,
      devices: worker.devices.map((device) => ({ ...device, replicas: device.replicas.map(over) })),
    })),
  }));
  const strategies = told.strategies.map((strategy) => ({ ...strategy, status: "stopped" }));
  return { ...told, hosts, strategies };
}

/** The workers that are drawn: all, or of too many those that are lost, then those that do something. */
export function telling(workers: readonly WorkerNode[]): Set<WorkerNode> {
  const rank = (worker: WorkerNode) =>
    worker.status === "lost"
      ? 0
      : worker.devices.some((device) => device.replicas.some((r) => r.busy))
        ? 1
        : 2;
  if (workers.length <= MAX_WORKERS) return new Set(workers);
  return new Set([...workers].sort((one, other) => rank(one) - rank(other)).slice(0, MAX_WORKERS));
}

function Strategies({ strategies }: { strategies: readonly StrategyNode[] }) {
  return (
    <>
      {strategies.slice(0, MAX_REPLICAS).map((strategy) => (
        <dl class="wb-facts" key={strategy.label}>
          <div>
            <dt>strategy</dt>
            <dd>{strategy.label}</dd>
          </div>
          <div>
            <dt>replicas</dt>
            <dd>{strategy.replicas}</dd>
          </div>
          {strategy.transport && (
            <div>
              <dt>all_reduce</dt>
              <dd>{strategy.transport}</dd>
            </div>
          )}
          <div>
            <dt>step</dt>
            <dd>{strategy.step < 0 ? NOTHING : strategy.step}</dd>
          </div>
          {strategy.generation > 1 && (
            <div>
              <dt>generation</dt>
              <dd>{strategy.generation}</dd>
            </div>
          )}
          <div>
            <dt>status</dt>
            <dd>
              <StatusWord word={strategy.status} />
            </dd>
          </div>
        </dl>
      ))}
    </>
  );
}

function Host({ host, shown, context }: { host: HostNode; shown: Set<WorkerNode>; context: Context }) {
  const here = host.workers.filter((worker) => shown.has(worker));
  const hidden = host.workers.length - here.length;
  return (
    <div class="wb-host" role="group" aria-label={`host ${host.name}`}>
      <div>
        <strong>{host.name}</strong> <span class="wb-quiet">{counted(host.workers.length, "worker")}</span>
      </div>
      <div class="wb-workers">
        {here.map((worker) => (
          <Worker key={worker.name} worker={worker} context={context} />
        ))}
      </div>
      {hidden > 0 && <div class="wb-quiet">… and {hidden} more</div>}
    </div>
  );
}

function Worker({ worker, context }: { worker: WorkerNode; context: Context }) {
  const facts = [`pid ${worker.pid}`, worker.memory_bytes === null ? "" : memoryText(worker.memory_bytes)];
  return (
    <div class="wb-worker" data-status={worker.status}>
      <div>
        worker {worker.name} <StatusWord word={worker.status} />
      </div>
      <div class="wb-quiet">{worker.detail || facts.filter(Boolean).join(" · ")}</div>
      {worker.devices.map((device) => (
        <Device key={device.name} device={device} context={context} />
      ))}
    </div>
  );
}

function Device({ device, context }: { device: DeviceNode; context: Context }) {
  if (!device.replicas.length) {
    return <div class="wb-quiet">{device.name}: no replica</div>;
  }
  return (
    <>
      {device.replicas.slice(0, MAX_REPLICAS).map((replica) => (
        <button
          key={`${replica.group}|${replica.replica}`}
          type="button"
          class="wb-replica"
          aria-pressed={context.selected.replica === replica.replica}
          title={`${replica.group}, replica ${replica.replica}: ${replica.doing}`}
          onClick={() => context.select(replica.replica)}
        >
          <b>r{replica.replica}</b> <span class="wb-quiet">{device.name}</span>
          <span class="wb-doing">
            {replica.busy ? "▶ " : ""}
            {replica.doing}
          </span>
        </button>
      ))}
      {device.replicas.length > MAX_REPLICAS && (
        <div class="wb-quiet">… {device.replicas.length - MAX_REPLICAS} more on it</div>
      )}
    </>
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
    { title: "host", left: true, rank: 3, least: 60, text: (line) => line.host },
    { title: "worker", left: true, least: 70, text: (line) => line.worker.name },
    { title: "status", left: true, rank: 1, text: (line) => line.worker.status },
    { title: "pid", rank: 7, text: (line) => String(line.worker.pid), order: (line) => line.worker.pid },
    {
      title: "memory",
      rank: 4,
      text: (line) => memoryText(line.worker.memory_bytes),
      order: (line) => line.worker.memory_bytes ?? -1,
    },
    {
      title: "heartbeat",
      rank: 5,
      text: (line) => `${line.worker.heartbeat_age_seconds.toFixed(1)} s ago`,
      order: (line) => line.worker.heartbeat_age_seconds,
    },
    { title: "device", left: true, rank: 2, text: (line) => line.device },
    { title: "strategy", left: true, rank: 6, least: 80, text: (line) => line.replica?.group ?? NOTHING },
    {
      title: "replica",
      text: (line) => (line.replica ? String(line.replica.replica) : NOTHING),
      order: (line) => line.replica?.replica ?? -1,
    },
    { title: "now", left: true, least: 120, text: (line) => line.replica?.doing ?? line.worker.detail },
  ];
  return (
    <Table
      label="Hosts, workers, devices and replicas"
      columns={columns}
      rows={rows}
      keyOf={(line) => line.key}
      isSelected={(line) => line.replica !== null && line.replica.replica === context.selected.replica}
      onPick={(line) => line.replica && context.select(line.replica.replica)}
    />
  );
}
