// The content of each view as rows and columns, with units in the names and no rounding: for CSV and Parquet.
import type { Collectives, GroupView, LaneItem, Models, Runs } from "../models";
import type { ViewName } from "../view";

export type Cell = string | number | boolean | null;
export type Row = Record<string, Cell>;

const SHEETS: { readonly [K in ViewName]: (model: Models[K]) => Row[] } = {
  topology: (model) =>
    model.hosts.flatMap((host) =>
      host.workers.flatMap((worker) =>
        worker.devices.flatMap((device) =>
          (device.replicas.length ? device.replicas : [null]).map((replica) => ({
            host: host.name,
            ...flat(worker, "worker_"),
            device: device.name,
            kind: device.kind,
            strategy: replica?.group ?? null,
            replica: replica?.replica ?? null,
            doing: replica?.doing ?? null,
          })),
        ),
      ),
    ),
  values: (model) =>
    model.values.flatMap((value) =>
      value.replicas.map((replica) => ({ name: value.name, kind: value.kind, ...flat(replica) })),
    ),
  array_sharding: (model) => model.parts.map((part) => flat(part)),
  dataset_sharding: (model) =>
    model.readers.flatMap((reader) =>
      reader.readings.map((reading) => ({
        replica: reader.replica,
        host: reader.host,
        step: reading.step,
        rows: reading.rows,
        elements: reading.text,
      })),
    ),
  input: (model) =>
    model.pipelines.flatMap((pipeline) =>
      pipeline.stages.map((stage, index) => ({
        host: pipeline.host,
        host_name: pipeline.name,
        ...flat(stage),
        bottleneck: index === pipeline.bottleneck,
      })),
    ),
  data_service: (model) => [
    ...model.jobs.map((job) => ({ kind: "job", ...flat(job), missing: job.missing.join(" ") })),
    ...model.workers.map((worker) => ({ kind: "worker", ...flat(worker) })),
  ],
  servers: (model) => [
    ...model.servers.map(({ variables, ...server }) => ({
      kind: "server",
      ...flat(server),
      variables: variables.length + server.hidden_variables,
    })),
    ...model.servers.flatMap((server) =>
      server.variables.map(({ shape, ...variable }) => ({
        kind: "variable",
        server: server.name,
        ...flat(variable),
        shape: shape.join(" "),
      })),
    ),
    ...model.workers.map((worker) => ({ kind: "worker", ...flat(worker) })),
    ...(model.queue ? [{ kind: "queue", ...flat(model.queue) }] : []),
  ],
  overview: (model) =>
    model.snapshot.groups.flatMap((group) =>
      group.steps.map((step) => ({ group: group.group, ...flat(step) })),
    ),
  collectives: timings,
  collective_table: timings,
  lanes: records,
  sweep: (model) =>
    model.sweeps.flatMap((sweep) =>
      sweep.points.map((point) => ({
        group: sweep.group,
        op: sweep.op,
        dtype: sweep.dtype,
        n: sweep.n,
        ...flat(point),
      })),
    ),
  heat_map: (model) =>
    model.snapshot.groups.flatMap(({ group, lateness }) =>
      lateness.replicas.flatMap((replica, row) =>
        lateness.steps.map((step, column) => ({
          group,
          replica,
          step,
          late_us: lateness.late_us[row]?.[column] ?? null,
        })),
      ),
    ),
  stuck: (model) =>
    model.snapshot.groups.flatMap(({ group, stuck }) =>
      (stuck?.last ?? []).map((last) => ({
        group,
        step: stuck!.step,
        seq: stuck!.seq,
        op: stuck!.op,
        site: stuck!.site,
        ...flat(last, "missing_"),
      })),
    ),
  log: (model) => model.snapshot.events.map((event) => without(flat(event), "key", "version")),
  devices: (model) => model.devices.map((device) => without(flat(device), "key")),
  runs: (model: Runs) =>
    model.compared.length
      ? model.rows.map((row) => without(flat(row), "key"))
      : model.runs.map((run) => flat(run)),
  replay: (model) => timings(model.collectives),
};

/** The rows of a view; all have the same columns. */
export function sheetOf<K extends ViewName>(view: K, model: Models[K]): Row[] {
  const rows = (SHEETS[view] as (model: Models[K]) => Row[])(model);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return rows.map((row) => Object.fromEntries(names.map((name) => [name, row[name] ?? null])));
}

function timings(model: Collectives): Row[] {
  return [...model.snapshot.table, ...model.snapshot.internal].map((row) =>
    without(flat(row), "key", "version"),
  );
}

/** One row per replica and collective in the view. */
function records(model: Collectives): Row[] {
  return model.snapshot.groups.flatMap((group) =>
    group.items.flatMap((item) => takers(group, item).map(({ row }) => row)),
  );
}

/** The replicas that took part in a collective, with their records. */
export function takers(group: GroupView, item: LaneItem) {
  return group.lanes.flatMap((lane, index) => {
    const enter = item.enter_ns[index] ?? null;
    if (enter === null) return [];
    // A label is "r3 host device"; the first two have no spaces.
    const [, host = "", ...device] = lane.label.split(" ");
    const row = {
      run_id: group.run_id,
      generation: group.generation,
      group: group.group,
      step: item.step,
      seq: item.seq,
      op: item.op,
      bytes: item.size_bytes,
      replica: lane.replica,
      host,
      device: device.join(" "),
      t_enter_ns: enter,
      t_ready_ns: item.ready_ns,
      t_end_ns: item.end_ns[index] ?? null,
      clock_err_ns: item.err_ns,
      state: item.state,
      site: item.site,
    };
    return [{ enter, end: row.t_end_ns ?? enter, row }];
  });
}

/** The fields of an object that fit a cell. Nested objects' fields get both names; lists become text. */
function flat(value: object, prefix = ""): Row {
  const row: Row = {};
  for (const [name, part] of Object.entries(value) as [string, unknown][]) {
    const key = `${prefix}${name}`;
    if (Array.isArray(part)) {
      if (part.every((one) => typeof one !== "object" || one === null)) row[key] = part.join(" ");
    } else if (typeof part === "object" && part !== null) Object.assign(row, flat(part, `${key}_`));
    else row[key] = part as Cell;
  }
  return row;
}

function without(row: Row, ...names: string[]): Row {
  return Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name)));
}
