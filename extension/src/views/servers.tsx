// Parameter servers: what they hold and how stale updates are, what each worker runs and how fast, and what still
// waits.
import { count, counted, dtypeText, NOTHING, significant, sizeText, sumOf } from "../format";
import type { FunctionQueue, HeldVariable, ServersStatus, ServerStatus, WorkerFunctions } from "../models";
import { Crowd } from "../parts/crowd";
import { ChartOrTable } from "../parts/head";
import { Bar } from "../parts/marks";
import { Course, perSecond, useRates } from "../parts/rates";
import { QUIET, Sign, StatusWord } from "../parts/status";
import { named, numeric, Table, type Column } from "../parts/table";
import type { View } from "../view";
import { Note, Quiet } from "../parts/small";

const MOST_SERVERS = 12;
const MOST_WORKERS = 24;
const MOST_VARIABLES = 8;
const SHORT_SECONDS = 0.5;
/** How a crowd of servers or workers is shown. */
const BY_NAME = {
  nameOf: ({ name }: { name: string }) => name,
  isOdd: ({ state }: { state: string }) => !QUIET.has(state),
};

export const servers: View<ServersStatus> = {
  title: "Servers",
  draw({ model }) {
    const size = sumOf(model.servers, (server) => server.size_bytes);
    return (
      <ChartOrTable
        title="Servers"
        facts={[
          counted(model.servers.length, "server"),
          model.workers.length > 0 && counted(model.workers.length, "worker"),
          `${sizeText(size)} held`,
        ]}
        status={model.status}
        verdict={model}
        chart={<Picture model={model} />}
        table={<Twin model={model} />}
      />
    );
  },
};

function Picture({ model }: { model: ServersStatus }) {
  const rates = useRates(model, () => [
    ...model.servers.map((server): [string, number] => [server.name, server.updates_per_second]),
    ...model.workers.map((worker): [string, number] => [worker.name, worker.functions_per_second]),
  ]);
  const fastest = Math.max(...model.workers.map((worker) => worker.functions_per_second), 1e-9);
  const largest = Math.max(...model.servers.flatMap((server) => server.variables.map(memoryOf)), 1);
  return (
    <>
      {model.queue && <Queue queue={model.queue} />}
      {model.workers.length > 0 && (
        <>
          <h4>Workers</h4>
          <Crowd
            noun="worker"
            all={model.workers}
            most={MOST_WORKERS}
            measures={[["functions/s", (worker) => worker.functions_per_second, fastest / 20]]}
            {...BY_NAME}
          >
            {(workers) => (
              <ul class="wb-worker-rows">
                {workers.map((worker) => (
                  <Lane key={worker.name} worker={worker} fastest={fastest} rates={rates.get(worker.name)} />
                ))}
              </ul>
            )}
          </Crowd>
        </>
      )}
      <h4>Servers</h4>
      <Crowd
        noun="server"
        all={model.servers}
        most={MOST_SERVERS}
        measures={[["updates/s", (server) => server.updates_per_second]]}
        {...BY_NAME}
      >
        {(servers) => (
          <div class="wb-server-cards">
            {servers.map((server) => (
              <Server key={server.name} server={server} largest={largest} rates={rates.get(server.name)} />
            ))}
          </div>
        )}
      </Crowd>
    </>
  );
}

/** Functions by their outcome; those that deserve a look stand out. */
function Queue({ queue }: { queue: FunctionQueue }) {
  const full = queue.waiting + queue.blocked >= queue.capacity;
  const figures: [text: string, n: number, help: string][] = [
    ["waiting", queue.waiting, full ? "the queue is full: schedule waits" : "for a worker"],
    ["for results", queue.blocked, "of other functions"],
    ["running", queue.running, "with a worker"],
    ["done", queue.done, "have returned"],
    ["failed", queue.failed, "have raised"],
    ["cancelled", queue.cancelled, "will not run"],
    ["run again", queue.run_again, "because a worker or a server was lost"],
  ];
  const warns = new Set(["failed", ...(full ? ["waiting"] : [])]);
  return (
    <dl class="wb-queue" aria-label="functions that were scheduled">
      {figures.map(([text, n, help]) => (
        <div key={text} title={help} data-none={n ? undefined : "yes"}>
          <dd>
            {n > 0 && warns.has(text) && <Sign />}
            {count(n)}
          </dd>
          <dt>{text}</dt>
        </div>
      ))}
      <div title="how many can wait before schedule waits">
        <dd class="wb-quiet">{count(queue.capacity)}</dd>
        <dt>capacity</dt>
      </div>
    </dl>
  );
}

interface LaneProps {
  worker: WorkerFunctions;
  fastest: number;
  rates: readonly number[] | undefined;
}

function Lane({ worker, fastest, rates }: LaneProps) {
  return (
    <li>
      <code>{worker.name}</code>
      <StatusWord word={worker.state} />
      <span class="wb-rate">
        <Bar share={worker.functions_per_second / fastest} />
        <b>{worker.state === "live" ? perSecond(worker.functions_per_second) : NOTHING}</b>
      </span>
      <Course rates={rates} label={`functions per second of ${worker.name}, lately`} />
      <span class="wb-runs" title={worker.detail || undefined}>
        {worker.detail || runsText(worker)}
      </span>
      <Quiet>
        {counted(worker.done, "function")}
        {worker.restarts > 0 && ` · restarted ${worker.restarts}×`}
      </Quiet>
    </li>
  );
}

interface ServerProps {
  server: ServerStatus;
  largest: number;
  rates: readonly number[] | undefined;
}

function Server({ server, largest, rates }: ServerProps) {
  const hidden = Math.max(0, server.variables.length - MOST_VARIABLES) + server.hidden_variables;
  return (
    <div
      class="wb-job"
      role="group"
      aria-label={server.name}
      data-status={QUIET.has(server.state) ? undefined : server.state}
    >
      <h4>
        {server.name} {!QUIET.has(server.state) && <StatusWord word={server.state} />}{" "}
        <Quiet>
          {server.host}, {server.address}
        </Quiet>
      </h4>
      <div class="wb-job-facts">
        {server.detail && <span>{server.detail}</span>}
        {server.state === "live" && (
          <>
            <b>{significant(server.updates_per_second)} updates/s</b>
            <Course rates={rates} label={`updates per second of ${server.name}, lately`} />
          </>
        )}
        <span>{counted(server.updates, "update")} applied</span>
        <span title="updates of a variable between a function's read of it and the function's own update">
          staleness {stalenessText(server)}
        </span>
        {server.left_out > 0 && <span>{count(server.left_out)} left out as too stale</span>}
        {server.repeated > 0 && <span>{count(server.repeated)} came again, applied once</span>}
        {server.restarts > 0 && <span>restarted {server.restarts}×, all updates kept</span>}
      </div>
      {server.variables.length > 0 ? (
        <ul class="wb-held">
          {server.variables.slice(0, MOST_VARIABLES).map((variable) => (
            <li key={variable.name}>
              <code title={variable.name}>{variable.name}</code>
              <Quiet>{extentOf(variable)}</Quiet>
              <span class="wb-rate">
                <Bar share={memoryOf(variable) / largest} />
                {memoryText(variable)}
              </span>
              <Quiet>{counted(variable.updates, "update")}</Quiet>
            </li>
          ))}
        </ul>
      ) : (
        <Note>holds no variable</Note>
      )}
      {hidden > 0 && <Note>{counted(hidden, "more variable")}, smaller</Note>}
    </div>
  );
}

function Twin({ model }: { model: ServersStatus }) {
  const held = model.servers.flatMap((server) =>
    server.variables.map((variable) => ({ ...variable, server: server.name })),
  );
  return (
    <>
      {model.queue && <Queue queue={model.queue} />}
      <Table
        label="Workers and their functions"
        empty="no ClusterCoordinator schedules functions yet"
        columns={WORKERS}
        rows={[...model.workers]}
        keyOf={(worker) => worker.name}
      />
      <Table
        label="Parameter servers"
        columns={SERVERS}
        rows={[...model.servers]}
        keyOf={(server) => server.name}
      />
      <Table
        label="Variables on parameter servers"
        empty="no variable was created yet"
        columns={VARIABLES}
        rows={held}
        keyOf={(variable) => `${variable.server} ${variable.name}`}
      />
    </>
  );
}

const WORKERS: Column<WorkerFunctions>[] = [
  named("worker", (worker) => worker.name, { least: 70 }),
  named("host", (worker) => worker.host, { rank: 4 }),
  named("state", (worker) => worker.state, {
    rank: 1,
    show: (worker) => <StatusWord word={worker.state} />,
  }),
  numeric("functions/s", (worker) => worker.functions_per_second, significant, {
    help: "in the last five seconds",
  }),
  numeric("functions", (worker) => worker.done, count),
  named("runs", (worker) => worker.detail || runsText(worker), { rank: 2, help: "now" }),
  numeric("restarted", (worker) => worker.restarts, count, {
    help: "how often another process took its place",
    rank: 5,
  }),
];

const SERVERS: Column<ServerStatus>[] = [
  named("server", (server) => server.name, { least: 60, help: "its process" }),
  named("where", (server) => `${server.host}, ${server.address}`, { rank: 5, help: "host, address" }),
  named("state", (server) => server.state, {
    rank: 1,
    show: (server) => <StatusWord word={server.state} />,
  }),
  numeric("holds", (server) => server.size_bytes, sizeText, { help: "its variables" }),
  numeric("updates/s", (server) => server.updates_per_second, significant, {
    help: "in the last five seconds",
  }),
  numeric("updates", (server) => server.updates, count, { rank: 2 }),
  {
    title: "staleness",
    help: "updates of a variable between a function's read of it and the function's own update",
    rank: 1,
    text: stalenessText,
    order: (server) => server.typical_staleness ?? -1,
  },
  numeric("left out", (server) => server.left_out, count, { help: "updates that were too stale", rank: 4 }),
  numeric("came again", (server) => server.repeated, count, {
    help: "updates that were sent again, and applied once",
    rank: 6,
  }),
  numeric("restarted", (server) => server.restarts, count, {
    help: "how often another process took its place, with all updates",
    rank: 6,
  }),
];

const VARIABLES: Column<HeldVariable & { server: string }>[] = [
  named("variable", (variable) => variable.name, { least: 90, help: "its name" }),
  named("on", (variable) => variable.server, { help: "which server" }),
  named("shape", extentOf, { rank: 1 }),
  numeric("size", (variable) => variable.size_bytes, sizeText),
  numeric("slots", (variable) => variable.slot_bytes, sizeText, {
    help: "what optimizers keep for it",
    rank: 3,
  }),
  numeric("updates", (variable) => variable.updates, count, { rank: 2 }),
];

function memoryOf(variable: HeldVariable): number {
  return variable.size_bytes + variable.slot_bytes;
}

function memoryText(variable: HeldVariable): string {
  const slots = variable.slot_bytes ? ` + ${sizeText(variable.slot_bytes)} slots` : "";
  return `${sizeText(variable.size_bytes)}${slots}`;
}

/** "500 rows × 16 f32", "f32" for a scalar. */
function extentOf(variable: HeldVariable): string {
  const [rows, ...others] = variable.shape;
  const dtype = dtypeText(variable.dtype);
  if (rows === undefined) return dtype;
  return `${counted(rows, "row")}${others.map((extent) => ` × ${count(extent)}`).join("")} ${dtype}`;
}

function runsText(worker: WorkerFunctions): string {
  if (!worker.running_together) return "idle";
  const more = worker.running_together > 1 ? ` and ${worker.running_together - 1} more` : "";
  const time = worker.running_seconds < SHORT_SECONDS ? "" : `, for ${significant(worker.running_seconds)} s`;
  return `${worker.running}${more}${time}`;
}

function stalenessText(server: ServerStatus): string {
  if (server.newest_staleness === null || server.typical_staleness === null) return NOTHING;
  return `${count(server.newest_staleness)}, typically ${count(server.typical_staleness)}`;
}
