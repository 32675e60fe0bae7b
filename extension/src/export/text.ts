// A view's content as files for other tools; the twins of workbench/telemetry/export/trace_files.py, which has whole
// runs.
import { known, meanOf, NOTHING } from "../format";
import type { Collectives, TableRow } from "../models";
import { takers, type Cell, type Row } from "./sheet";

/** CSV with a header line, quoted as in RFC 4180. Text that a spreadsheet would calculate gets a "'" in front. */
export function csv(rows: readonly Row[]): string {
  const names = Object.keys(rows[0] ?? {});
  const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const cell = (value: Cell) =>
    typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
  const lines = rows.map((row) => names.map((name) => quoted(cell(row[name] ?? null))).join(","));
  return [names.map(quoted).join(","), ...lines, ""].join("\r\n");
}

type TraceEvent = Record<string, unknown>;

/** A trace for ui.perfetto.dev: process = host, thread = replica, times in µs, an arrow through each collective. */
export function perfetto(model: Collectives): { traceEvents: TraceEvent[]; displayTimeUnit: string } {
  const pids = new Map<string, number>();
  const pidOf = (host: string) => {
    if (!pids.has(host)) pids.set(host, pids.size + 1);
    return pids.get(host)!;
  };
  const threads = new Map<string, TraceEvent>();
  const trace: TraceEvent[] = [];
  let flow = 0;
  for (const group of model.snapshot.groups) {
    for (const item of group.items) {
      const found = takers(group, item).sort((one, other) => one.enter - other.enter);
      flow += 1;
      found.forEach(({ enter, end, row }, position) => {
        const place = { pid: pidOf(row.host), tid: row.replica };
        const label = `r${row.replica} ${row.host} ${row.device}`;
        threads.set(label, metadata("thread_name", place, label));
        const spent = Math.max(0, end - enter) / 1000;
        const args = {
          step: row.step,
          seq: row.seq,
          group: row.group,
          bytes: row.bytes,
          state: row.state,
          site: row.site,
        };
        const common = { ph: "X", ...place, ts: enter / 1000 };
        trace.push({ ...common, name: row.op, cat: "collective", dur: spent, args });
        const waited = (item.ready_ns - enter) / 1000;
        if (waited > 0 && waited <= spent) trace.push({ ...common, name: "wait", cat: "wait", dur: waited });
        if (found.length < 2) return;
        const last = position === found.length - 1;
        trace.push({
          name: `${row.op} step ${row.step} seq ${row.seq}`,
          cat: "collective",
          ph: position === 0 ? "s" : last ? "f" : "t",
          id: flow,
          ts: enter / 1000,
          ...place,
          ...(last ? { bp: "e" } : {}), // ends at the slice around it, not at the next one to begin
        });
      });
    }
  }
  const instants = model.snapshot.events.map((event) => ({
    name: `${event.name}: ${event.message}`,
    cat: event.kind,
    ph: "i",
    s: pids.has(event.host) ? "t" : "g",
    ts: event.t_ns / 1000,
    pid: pids.get(event.host) ?? 0,
    tid: Math.max(event.replica, 0),
  }));
  const processes = [...pids].map(([host, pid]) => metadata("process_name", { pid, tid: 0 }, `host ${host}`));
  return { traceEvents: [...processes, ...threads.values(), ...trace, ...instants], displayTimeUnit: "ns" };
}

function metadata(name: string, place: { pid: number; tid: number }, value: string): TraceEvent {
  return { name, ph: "M", ...place, args: { name: value } };
}

const NCCL_DTYPES: Record<string, string> = { float32: "float", float64: "double", float16: "half" };

/** The timing table as nccl-tests prints it, per collective and group. */
export function ncclTests(rows: readonly TableRow[]): string {
  const lines: string[] = [];
  const titles = new Set(rows.map(titleOf));
  const heading = (cells: string[]) => `# ${columns(cells, [10, 12, 8, 6, 6, 7, 6, 6, 6])}`;
  for (const title of titles) {
    lines.push(`# ${title}`);
    lines.push(heading(["size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"]));
    lines.push(heading(["(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", ""]));
    for (const row of rows.filter((one) => titleOf(one) === title)) {
      const { algbw, busbw } = medianRates(row);
      const rate = (value: number | null) => (value === null ? NOTHING : value.toFixed(2));
      const figures = [row.p50_us.toFixed(2), rate(algbw), rate(busbw), "N/A"];
      const cells = [String(row.size_bytes), String(row.count), ncclDtype(row), row.redop || "none", "-1"];
      lines.push(columns([...cells, ...figures], [12, 12, 8, 6, 6, 7, 6, 6, 6]));
    }
  }
  return `${lines.join("\n")}\n`;
}

/** The timing table in the shape of nccl-tests' own JSON report. */
export function ncclTestsJson(rows: readonly TableRow[]): object {
  const results = rows.map((row) => {
    const { algbw, busbw } = medianRates(row);
    return {
      collective: row.op,
      group: row.group,
      nranks: row.n,
      size: row.size_bytes,
      count: row.count,
      type: ncclDtype(row),
      redop: row.redop || "none",
      root: -1,
      out_of_place: { time: row.p50_us, alg_bw: algbw, bus_bw: busbw, nwrong: null },
    };
  });
  const rates = known(results.map(({ out_of_place }) => out_of_place.bus_bw));
  const bandwidth = meanOf(rates);
  return { results, average_bus_bandwidth: { bandwidth, okay: "unchecked" } };
}

function titleOf(row: TableRow): string {
  return `${row.op} ${row.group} nranks ${row.n}`;
}

function columns(cells: readonly string[], widths: readonly number[]): string {
  return cells.map((cell, index) => cell.padStart(widths[index]!)).join("  ");
}

function ncclDtype(row: TableRow): string {
  return NCCL_DTYPES[row.dtype] ?? row.dtype;
}

/** At the median time; a row has the rates of its latest collective, which took `last_us`. */
function medianRates(row: TableRow): { algbw: number | null; busbw: number | null } {
  if (row.algbw === null || row.busbw === null || row.p50_us <= 0) return { algbw: null, busbw: null };
  const algbw = row.size_bytes / (1000 * row.p50_us);
  return { algbw, busbw: (algbw * row.busbw) / row.algbw };
}
