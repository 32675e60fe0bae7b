// Recorded runs, and two of them side by side.
import { useState } from "preact/hooks";
import { Head } from "../parts/head";
import { Sign } from "../parts/status";
import { named, numeric, Table, type Column } from "../parts/table";
import { count, counted, momentText, NOTHING, sizeText, timeText } from "../format";
import type { RunEntry, Runs } from "../models";
import type { Context, View } from "../view";
import { Comparison } from "./comparison";
import { Nothing, STEP } from "../parts/nothing";
import { Button } from "../parts/small";

const RECORD = `with wb.record("runs/first.parquet"):\n    ${STEP}`;

export const runs: View<Runs> = {
  title: "Runs",
  draw({ model, context }) {
    if (!model.runs.length)
      return (
        <Nothing title="No run was recorded yet" code={RECORD}>
          Runs that are recorded{model.folder !== "." && ` below ${model.folder}`} stand here: to be opened
          again without a cluster, and two of them side by side.
        </Nothing>
      );
    return (
      <>
        <RunList model={model} context={context} />
        {model.compared.length === 2 && <Comparison model={model} />}
      </>
    );
  },
};

function RunList({ model, context }: { model: Runs; context: Context }) {
  const [picked, setPicked] = useState<readonly string[]>([]);
  const ask = context.ask;
  const there = picked.filter((path) => model.runs.some((run) => run.path === path));
  const [first, second] = there;
  const nameOf = (path: string) => model.runs.find((run) => run.path === path)?.name ?? path;
  const pick = (run: RunEntry) => {
    if (!ask || run.problem) return;
    if (there.includes(run.path)) setPicked(there.filter((path) => path !== run.path));
    else setPicked([...there.slice(-1), run.path]); // of three, the oldest choice is dropped
  };
  return (
    <div class="wb-part">
      <Head
        title="Recorded runs"
        facts={[
          model.folder !== "." && model.folder,
          counted(model.runs.length, "run"),
          ask && !first && "pick one to open, two to compare",
        ]}
      />
      <Table
        label="Recorded runs"
        columns={COLUMNS}
        rows={model.runs}
        keyOf={(run) => run.path}
        isSelected={(run) => there.includes(run.path)}
        onPick={pick}
      />
      <div class="wb-form">
        {ask && first !== undefined && second === undefined && (
          <Button onClick={() => ask({ kind: "open_run", path: first })}>Open {nameOf(first)}</Button>
        )}
        {ask && first !== undefined && second !== undefined && (
          <Button onClick={() => ask({ kind: "compare_runs", first, second })}>
            Compare {nameOf(second)} with {nameOf(first)}
          </Button>
        )}
      </div>
    </div>
  );
}

/** Nothing is known about a file that cannot be opened. */
function known(of: (run: RunEntry) => number) {
  return (run: RunEntry) => (run.problem ? null : of(run));
}

const COLUMNS: Column<RunEntry>[] = [
  named("run", (run) => run.name, {
    help: "its name",
    least: 100,
    show: (run) => (
      <>
        {run.problem && <Sign sign="✖" />}
        {run.name}
      </>
    ),
  }),
  named("written", (run) => momentText(run.written) || NOTHING, {
    help: "when",
    rank: 2,
    order: (run) => run.written,
  }),
  numeric(
    "duration",
    known((run) => 1e6 * run.duration_seconds),
    timeText,
    { rank: 1, help: "from its first record to its last" },
  ),
  numeric(
    "replicas",
    known((run) => run.replicas),
    count,
    { rank: 5 },
  ),
  numeric(
    "records",
    known((run) => run.records),
    count,
    { rank: 4, help: "how many" },
  ),
  numeric(
    "alerts",
    known((run) => run.alerts),
    (alerts) => (alerts ? `▲ ${count(alerts)}` : count(alerts)),
    { rank: 1, help: "how many" },
  ),
  numeric("file", (run) => run.size_bytes, sizeText, { rank: 6, help: "its size" }),
  named("problem", (run) => run.problem || NOTHING, {
    help: "why it cannot be opened",
    rank: 3,
    least: 100,
    show: (run) => run.problem,
  }),
];
