// The figures of a dataset's matrix as tables.
import { count, NOTHING, percent, timeText } from "../format";
import type { DatasetSharding, Reader } from "../models";
import { type Span, spanText, stepsOf } from "../parts/steps";
import { named, numeric, replicaOf, selecting, Table, type Column, type Columns } from "../parts/table";
import type { Context } from "../view";
import { columnsOf, readingOf, rowsOf } from "./columns";
import { stepOf, waitedShare, waitIn, waitsOf } from "./progress";

interface Props {
  model: DatasetSharding;
  context: Context;
}

interface Replica {
  replica: number;
  rows: number;
  at: number;
}

/** For each replica, how much it reads, where it is, and how long it waited. */
function Replicas({ model: { progress, counts, limit }, context }: Props) {
  const columns: Column<Replica>[] = [
    numeric("replica", ({ replica }) => replica),
    numeric("at step", ({ at }) => (at < 0 ? null : at), count, { help: "its newest" }),
    numeric("rows in all", ({ rows }) => rows, count, {
      rank: 2,
      help: limit ? "of what was looked at" : "of the epoch",
    }),
    numeric(
      "waited for input",
      ({ replica }) => progress && 1e6 * progress.waited_seconds[replica]!,
      timeText,
      { rank: 1, help: "so far" },
    ),
    numeric("of the time", ({ replica }) => progress && 100 * waitedShare(progress, replica), percent, {
      help: "waited",
    }),
  ];
  return (
    <Table
      label={progress ? `Where replicas are in epoch ${progress.epoch}` : "Rows by replica"}
      columns={columns}
      rows={counts.map((rows, replica) => ({ replica, rows, at: progress?.steps[replica] ?? -1 }))}
      keyOf={replicaOf}
      {...selecting(context, replicaOf)}
    />
  );
}

interface Line {
  reader: Reader;
  steps: Span;
}

export function Twin({ model, context }: Props) {
  const readers = [...model.readers, ...(model.together ?? [])];
  const every = columnsOf(model, Infinity, 1);
  const waits = waitsOf(model, every);
  const rows = readers.flatMap((reader) => every.map((steps): Line => ({ reader, steps })));
  const axis = stepsOf(model.progress?.sampled, context);
  const columns: Columns<Line> = [
    { title: "step", text: ({ steps }) => spanText(steps), order: ({ steps }) => steps.first },
    {
      title: "replica",
      text: ({ reader: { replica, label } }) => (replica < 0 ? label! : String(replica)),
      order: ({ reader }) => readers.indexOf(reader),
    },
    numeric("host", ({ reader: { host } }) => (host < 0 ? null : host), count, { rank: 2 }),
    numeric("rows", ({ reader, steps }) => rowsOf(reader, steps), count, { rank: 1, help: "how many" }),
    model.progress?.waits?.length &&
      numeric(
        "waited",
        ({ reader, steps }) => waitIn(waits, reader.replica, steps)?.waited_us ?? null,
        timeText,
        {
          rank: 3,
          help: "for it and the batches that came with it",
        },
      ),
    named("elements", ({ reader, steps }) => readingOf(reader, steps)?.text || NOTHING, {
      least: 120,
      help: "which",
    }),
  ];
  return (
    <>
      <Replicas model={model} context={context} />
      <Table
        label="Who reads what"
        columns={columns}
        rows={rows}
        keyOf={({ reader, steps }) => `${steps.first}|${reader.replica}${reader.label}`}
        {...selecting(context, ({ reader }: Line) => reader.replica)}
        isPointed={({ steps }) => axis.pointed !== null && stepOf(model, steps.first) === axis.pointed}
        onPoint={(line) => axis.point((line && stepOf(model, line.steps.first)) ?? null)}
      />
    </>
  );
}
