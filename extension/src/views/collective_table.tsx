// The timing table: one row per operation, size, element type and group; columns in the order of nccl-tests.
import { type Fact, Head, Rest } from "../parts/head";
import { Exportable } from "../export/scope";
import { Bar, Spark } from "../parts/marks";
import { named, numeric, selecting, Table, type Column } from "../parts/table";
import { NoMeeting } from "../parts/nothing";
import { groupText, wording } from "../parts/terms";
import {
  count,
  counted,
  dtypeText,
  NOTHING,
  percent,
  rateText,
  significant,
  sizeText,
  timeUnit,
  type TimeUnit,
  joined,
} from "../format";
import type { Collectives, Counters, TableRow } from "../models";
import type { Context, View } from "../view";
import { heatMap } from "./heat_map";

const MAX_SILENT = 4;

export const collectiveTable: View<Collectives> = {
  title: "Collective timing",
  draw({ model, context }) {
    const { table, counters } = model.snapshot;
    const unit = unitOf(table);
    return (
      <div class="wb-part">
        <Head
          title="Collective timing"
          facts={[
            counted(counters.collectives, "collective"),
            table.length > 0 && `times in ${unit.name}`,
            ...losses(counters),
            silentText(model.silent),
          ]}
          status={model.status}
        />
        {table.length ? (
          <>
            <CollectiveRows table={table} context={context} />
            <Rest>
              <Exportable view="heat_map" title={heatMap.title} model={model}>
                <heatMap.draw model={model} context={context} />
              </Exportable>
            </Rest>
          </>
        ) : (
          <NoMeeting title="No collective of your code was recorded yet" />
        )}
      </div>
    );
  },
};

/** The unit of the times in the table. */
export function unitOf(table: readonly TableRow[]): TimeUnit {
  return timeUnit(table.map((row) => row.p50_us));
}

interface RowsProps {
  table: readonly TableRow[];
  context: Context;
}

/** The rows alone. */
export function CollectiveRows({ table, context }: RowsProps) {
  return (
    <Table
      label="Collective timing"
      columns={columnsOf(unitOf(table), table)}
      rows={table}
      keyOf={(row) => row.key}
      {...selecting(context, (row: TableRow) => row.late_replica ?? -1)}
    />
  );
}

/** Whether rows of one operation and size differ in a field. */
export function tellsApart(rows: readonly TableRow[], of: (row: TableRow) => string | number): boolean {
  const seen = new Map<string, string | number>();
  return rows.some((row) => {
    const key = `${row.group}|${row.op}|${row.size_bytes}`;
    const other = seen.get(key) ?? of(row);
    seen.set(key, other);
    return other !== of(row);
  });
}

/** The columns of the rows. */
export function columnsOf(unit: TimeUnit, rows: readonly TableRow[]): Column<TableRow>[] {
  // Columns that distinguish rows are hidden late; only those that show whether they wait are hidden later.
  const telling = (of: (row: TableRow) => string | number, otherwise: number) =>
    tellsApart(rows, of) ? 2 : otherwise;
  type Part = Partial<Column<TableRow>>;
  const time = (title: string, help: string, of: (row: TableRow) => number, part: Part = {}) =>
    numeric(title, of, (us) => significant(us / unit.us), { help: `${help}, in ${unit.name}`, ...part });
  const rate = (title: string, help: string, of: (row: TableRow) => number | null, part: Part = {}) =>
    numeric(title, of, rateText, { help: `${help} of the latest`, ...part });
  const columns: Column<TableRow>[] = [
    named("operation", (row) => row.op, { term: "op" }),
    numeric("size", (row) => row.size_bytes, sizeText),
    numeric("elements", (row) => row.count, count, { rank: 13, term: "count" }),
    named("type", (row) => dtypeText(row.dtype), { rank: telling((row) => row.dtype, 5), term: "dtype" }),
    named("reduction", (row) => row.redop || NOTHING, {
      rank: telling((row) => row.redop, 6),
      term: "redop",
    }),
    numeric("replicas", (row) => row.n, String, {
      rank: telling((row) => row.n, 7),
      term: "n",
    }),
    time("latest", "transfer time", (row) => row.last_us, { rank: 8 }),
    time("median", "transfer time", (row) => row.p50_us, { term: "p50" }),
    time("slowest 1\u202f%", "transfer time", (row) => row.p99_us, { rank: 3, term: "p99" }),
    numeric("spread", (row) => row.cv_percent, percent, {
      rank: 12,
      term: "cv",
      help: "standard deviation of the transfer time over its mean",
    }),
    rate("data rate", "algorithm bandwidth", (row) => row.algbw, { rank: 10, term: "algbw" }),
    rate("bandwidth", "bus bandwidth", (row) => row.busbw, { term: "busbw" }),
    numeric("limit", (row) => row.limit_percent, percent, {
      rank: 9,
      help: "bus bandwidth as a share of the measured limit",
    }),
    numeric("wait", (row) => row.wait_percent, percent, {
      rank: 1,
      help: "share of the replicas' time in it that they waited for the last one",
      show: (row) => (
        <>
          <Bar share={row.wait_percent / 100} />
          {percent(row.wait_percent)}
        </>
      ),
    }),
    named("trend", (row) => `${row.recent_us.length} times`, {
      rank: 11,
      help: "transfer times of the newest, from zero",
      show: (row) => <Spark values={row.recent_us} label={trendText(row, unit)} />,
      order: (row) => row.samples,
    }),
    named("late", lateText, { rank: 4, least: 60, help: "who came last most often" }),
    named("how", howText, { rank: 11, least: 90, help: "algorithm and transport" }),
  ];
  if (new Set(rows.map((row) => row.group)).size > 1)
    columns.unshift({
      ...{ title: "group", left: true, rank: 1, least: 80 },
      text: (row) => groupText(row.group),
      show: (row) => <Group name={groupText(row.group)} />,
    });
  return columns;
}

/** The name of a group. Names of one kind differ only at their ends, so the end stays where there is no room. */
function Group({ name }: { name: string }) {
  const [, kind, end] = /^(.*?)([ /]\d+)?$/s.exec(name)!;
  return (
    <span class="wb-group">
      <span>{kind}</span>
      {end}
    </span>
  );
}

function lateText(row: TableRow): string {
  if (row.late_replica === null) return NOTHING;
  const { late_replica: late, late_host: host } = row;
  return host
    ? wording(`replica ${late} on ${host}`, `r${late}@${host}`)
    : wording(`replica ${late}`, `r${late}`);
}

function howText(row: TableRow): string {
  const packs = row.packs > 1 ? `${row.packs} packs` : "";
  return joined([row.algorithm, row.transport, packs], ", ") || NOTHING;
}

function trendText(row: TableRow, unit: TimeUnit): string {
  const times = row.recent_us.map((us) => us / unit.us);
  const range = `${significant(Math.min(...times))} to ${significant(Math.max(...times))} ${unit.name}`;
  return `newest ${times.length} of ${counted(row.samples, "collective")}: ${range}`;
}

/** Who did not answer, or "". */
function silentText(silent: readonly string[]): string {
  if (silent.length < 2) return silent.map((address) => `worker ${address} did not answer`).join("");
  const more = silent.length > MAX_SILENT ? ", …" : "";
  return `${silent.length} workers did not answer: ${silent.slice(0, MAX_SILENT).join(", ")}${more}`;
}

/** Why older events are missing. */
export const DROPPED_EVENTS =
  "Only the newest alerts and lines are kept here, and older ones went to make room. wb.record(path) writes all that arrive to a file.";

/** What was lost or failed, each with its meaning. */
function losses(counters: Counters): Fact[] {
  const counts: [number, string, string][] = [
    [
      counters.failed,
      "failed",
      "Collectives that ended in a mismatch, a passed deadline, an abort or an error.",
    ],
    [
      counters.incomplete,
      "incomplete",
      "Collectives that were given up on, as the record of some replica never came. They are in no figure here.",
    ],
    [
      counters.dropped,
      "records dropped",
      "Replicas made records faster than these were fetched, so the oldest went. The figures are of those that came; the job itself lost nothing. Fewer collectives make fewer records: one takes several arrays.",
    ],
    [counters.dropped_events, "events dropped", DROPPED_EVENTS],
  ];
  return counts.filter(([n]) => n > 0).map(([n, what, help]) => ({ text: `${count(n)} ${what}`, help }));
}
