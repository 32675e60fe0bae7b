// Hosts, their workers, devices and replicas, and what each does now.
import { ChartOrTable } from "../parts/head";
import { StatusWord } from "../parts/status";
import { named, numeric, selecting, Table, type Column } from "../parts/table";
import { groupText, wording } from "../parts/terms";
import { count, counted, joined, memoryText, NOTHING, percent, rateText } from "../format";
import type { ReplicaNode, Topology } from "../models";
import type { Context, View } from "../view";
import { Fact } from "../parts/small";
import { placesOf, together, type Place } from "../topology/places";
import { Squares } from "../topology/squares";

const MAX_STRATEGIES = 8;

export const topology: View<Topology> = {
  title: "Topology",
  draw({ model: told, context }) {
    const model = told.status === "stopped" ? ended(told) : told;
    const { hosts } = model;
    const places = hosts.flatMap(placesOf);
    const devices = new Set(places.flatMap(({ device }) => device ?? []));
    const kinds = [...new Set([...devices].map((device) => device.kind))].join(" and ");
    return (
      <ChartOrTable
        title="Topology"
        facts={[
          `${counted(devices.size, `${kinds} device`.trim())} on ${counted(hosts.length, "host")}`,
          wording("", `run ${model.run}`),
          model.status === "stopped" && "as it was last",
        ]}
        status={model.status}
        chart={
          <>
            <Strategies {...model} />
            {hosts.length > 0 && <Squares model={model} hosts={together(hosts)} context={context} />}
          </>
        }
        table={<Twin places={places} context={context} />}
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

function Strategies({ strategies, status }: Topology) {
  return (
    <>
      {strategies.slice(0, MAX_STRATEGIES).map((strategy) => (
        <dl class="wb-facts" key={strategy.label}>
          <Fact name="strategy">{strategy.label}</Fact>
          <Fact name="replicas">{strategy.replicas}</Fact>
          {strategy.transport && (
            <Fact name="links">
              {joined([strategy.transport, strategy.bandwidth != null && rateText(strategy.bandwidth)], ", ")}
            </Fact>
          )}
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

function Twin({ places, context }: { places: readonly Place[]; context: Context }) {
  const columns: Column<Place>[] = [
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
    named("device", ({ device }) => device?.name ?? NOTHING, { rank: 2 }),
    named("strategy", ({ replica }) => (replica ? groupText(replica.group) : NOTHING), {
      rank: 6,
      least: 80,
      help: "of the replica",
    }),
    numeric("replica", ({ replica }) => replica?.replica ?? null, count),
    numeric(
      "busy",
      ({ replica }) => (replica?.busy_share == null ? null : 100 * replica.busy_share),
      percent,
      {
        help: "in how much of its newest steps it did not wait",
        rank: 8,
      },
    ),
    named(
      "now",
      ({ worker, replica }) => joined([replica?.news, replica?.doing || worker.detail]) || NOTHING,
      {
        least: 120,
        help: "what it does",
      },
    ),
  ];
  return (
    <Table
      label="Hosts, workers, devices and replicas"
      columns={columns}
      rows={places}
      keyOf={({ worker, device, replica }) =>
        joined([worker.name, device?.name, replica?.group, replica && `r${replica.replica}`], "|")
      }
      {...selecting(context, ({ replica }: Place) => replica?.replica ?? -1)}
    />
  );
}
