// Recorded runs, and two of them side by side.
import { useState } from "preact/hooks";
import { BAD, GOOD } from "../colours";
import { Head, Sign } from "../parts/head";
import { Table, type Column } from "../parts/table";
import { count, counted, dtypeText, NOTHING, rateText, significant, sizeText, timeText } from "../format";
import type { ComparedRow, RunEntry, Runs } from "../models";
import type { Context, View } from "../view";

/** Medians closer than this are called alike. */
const ALIKE = 0.1;

export const runs: View<Runs> = {
  title: "Runs",
  draw({ model, context }) {
    return (
      <>
        <RunList model={model} context={context} />
        {model.compared.length === 2 && <Comparison model={model} />}
      </>
    );
  },
};

function RunList({ model, context }: { model: Runs; context: Context }) {
  const [first, setFirst] = useState<string | null>(null);
  const ask = context.ask;
  const pick = (run: RunEntry) => {
    if (!ask || run.problem) return;
    if (first === null || first === run.path) {
      setFirst(first === run.path ? null : run.path);
      ask({ kind: "open_run", path: run.path });
    } else {
      ask({ kind: "compare_runs", first, second: run.path });
      setFirst(null);
    }
  };
  return (
    <div class="wb-part">
      <Head
        title="Recorded runs"
        facts={[
          model.folder,
          counted(model.runs.length, "run"),
          first !== null && "pick another one to compare",
        ]}
        status="replay"
      />
      <Table
        label="Recorded runs"
        empty={`no recorded runs in ${model.folder}: with wb.record("name.parquet"): … makes one`}
        columns={COLUMNS}
        rows={model.runs}
        keyOf={(run) => run.path}
        isSelected={(run) => run.path === first || model.compared.includes(run.name)}
        onPick={pick}
      />
    </div>
  );
}

const COLUMNS: Column<RunEntry>[] = [
  { title: "run", left: true, text: (run) => run.name },
  {
    title: "written",
    left: true,
    text: (run) => run.written.replace("T", " ").slice(0, 19) || NOTHING,
    order: (run) => run.written,
  },
  {
    title: "duration",
    text: (run) => timeText(run.duration_seconds * 1e6),
    order: (run) => run.duration_seconds,
  },
  { title: "replicas", text: (run) => count(run.replicas), order: (run) => run.replicas },
  { title: "records", text: (run) => count(run.records), order: (run) => run.records },
  {
    title: "alerts",
    text: (run) => count(run.alerts),
    show: (run) => (run.alerts ? `▲ ${count(run.alerts)}` : "0"),
    order: (run) => run.alerts,
  },
  { title: "file", text: (run) => sizeText(run.size_bytes), order: (run) => run.size_bytes },
  {
    title: "problem",
    left: true,
    text: (run) => run.problem,
    show: (run) =>
      run.problem && (
        <>
          <Sign sign="✖" colour={BAD} /> {run.problem}
        </>
      ),
  },
];

function Comparison({ model }: { model: Runs }) {
  const [first, second] = model.compared as [string, string];
  const columns: Column<ComparedRow>[] = [
    { title: "op", left: true, text: (row) => row.op },
    { title: "size", text: (row) => sizeText(row.size_bytes), order: (row) => row.size_bytes },
    { title: "type", left: true, text: (row) => dtypeText(row.dtype) },
    { title: "n", text: (row) => String(row.n), order: (row) => row.n },
    {
      title: `p50 ${first}`,
      text: (row) => timeText(row.first_p50_us),
      order: (row) => row.first_p50_us ?? -1,
    },
    {
      title: `p50 ${second}`,
      text: (row) => timeText(row.second_p50_us),
      order: (row) => row.second_p50_us ?? -1,
    },
    {
      title: `busbw ${first}`,
      text: (row) => rateText(row.first_busbw),
      order: (row) => row.first_busbw ?? -1,
    },
    {
      title: `busbw ${second}`,
      text: (row) => rateText(row.second_busbw),
      order: (row) => row.second_busbw ?? -1,
    },
    {
      title: "time ratio",
      help: "second median over first",
      left: true,
      text: (row) => ratioText(row.ratio),
      show: (row) => <Ratio ratio={row.ratio} />,
      order: (row) => row.ratio ?? -1,
    },
  ];
  return (
    <div class="wb-part">
      <Head title={`${first} and ${second}`} facts={["medians of transfer times, bandwidth of the latest"]} />
      <Table label={`${first} and ${second}`} columns={columns} rows={model.rows} keyOf={(row) => row.key} />
    </div>
  );
}

export function ratioText(ratio: number | null): string {
  if (ratio === null) return "only in one";
  if (Math.abs(ratio - 1) < ALIKE) return `${significant(ratio)} alike`;
  return `${significant(ratio)} ${ratio < 1 ? "faster" : "slower"}`;
}

function Ratio({ ratio }: { ratio: number | null }) {
  const text = ratioText(ratio);
  if (text.endsWith("faster"))
    return (
      <>
        <Sign sign="▼" colour={GOOD} /> {text}
      </>
    );
  if (text.endsWith("slower"))
    return (
      <>
        <Sign sign="▲" colour={BAD} /> {text}
      </>
    );
  return <>{text}</>;
}
