// Elements on x, replicas on y: who reads what at which step, why, and what another layout would do.
import { useRef, useState } from "preact/hooks";
import { sequential, textOn } from "../colours";
import { ChartOrTable } from "../parts/head";
import { Sign } from "../parts/status";
import { Ramp } from "../parts/marks";
import { paintEnd, type Cell, type Painting } from "../parts/painting";
import { Plane } from "../parts/plane";
import { Brushed, paintColumn, rangeText, type Span, spanText, stepsOf } from "../parts/steps";
import { useStill } from "../parts/still";
import { named, numeric, selecting, Table, type Column } from "../parts/table";
import { apart } from "../parts/ticks";
import { count, counted, joined, NOTHING, percent, runsOf, secondsText, sumOf } from "../format";
import type { DatasetSharding, InputProgress, Reader, Reading } from "../models";
import { isLit } from "../selection";
import type { Context, View } from "../view";
import { Fact, Quiet } from "../parts/small";

const ROW = 22;
const TOP = 18;
const BOTTOM = 6;
const LEFT = 96;
const RIGHT = 64;
const RIGHT_WAITING = 132;
/** From here on waiting for input is worth a sign. */
const MUCH_WAITING = 0.2;
const PAUSE_MS = 150;
const POLICIES = ["AUTO", "FILE", "DATA", "HINT", "OFF"];

export const datasetSharding: View<DatasetSharding> = {
  title: "Dataset sharding",
  draw(props) {
    return <Dataset {...props} />;
  },
};

interface Props {
  model: DatasetSharding;
  context: Context;
}

function Dataset({ model: newest, context }: Props) {
  const axis = stepsOf(newest.progress?.sampled, context);
  const shown = {
    model: useStill(newest, axis.range !== null, (model) => batchesOf(model, axis.range).length > 0),
    context,
  };
  return (
    <>
      <ChartOrTable
        title="DistributedDataset"
        facts={[shown.model.reason]}
        chart={<Picture {...shown} />}
        table={<Twin {...shown} />}
      >
        <Brushed steps={axis} />
        <span class="wb-pill">policy {shown.model.policy}</span>
      </ChartOrTable>
      <WhatIf {...shown} />
    </>
  );
}

/** The step of the strategy that a batch is for, where that is known. */
function stepOf({ progress }: DatasetSharding, batch: number): number | undefined {
  const steps = progress?.sampled?.steps;
  return steps?.[steps.length - progress!.given + batch];
}

/** Numbers of the batches that are for some steps of the strategy; a batch may be for several. */
export function batchesOf(model: DatasetSharding, steps: Span | null): number[] {
  const batches = model.readers[0]?.readings.map(({ step }) => step) ?? [];
  return batches.filter((batch) => {
    const first = stepOf(model, batch);
    if (!steps || first === undefined) return false;
    const next = stepOf(model, batch + 1) ?? first;
    return first <= steps.last && Math.max(first, next - 1) >= steps.first;
  });
}

/** What each replica reads for some steps, in words; of one batch, which elements. */
function readText({ readers, progress }: DatasetSharding, steps: Span, batches: readonly number[]): string {
  if (!batches.length) return `${rangeText(steps)}: none of the batches that are drawn`;
  const several = batches.length > 1;
  const each = readers.map(({ replica, readings }) => {
    const read = readings.filter(({ step }) => batches.includes(step));
    const rows = counted(
      sumOf(read, (reading) => reading.rows),
      "row",
    );
    return joined([`r${replica}`, rows, !several && read[0]?.text], " ");
  });
  const { epoch } = progress!;
  const which = `batch${several ? "es" : ""} ${spanText({ first: batches[0]!, last: batches.at(-1)! })}`;
  return joined([
    `${rangeText(steps)}: ${which} of epoch ${epoch}`,
    ...each,
    !several && epoch > 0 && "elements as in epoch 0",
  ]);
}

/** The part of the time, 0 to 1, in which a replica waited for its input. */
export function waitedShare(progress: InputProgress, replica: number): number {
  const { waited_seconds, elapsed_seconds } = progress;
  return elapsed_seconds > 0 ? Math.min(1, (waited_seconds[replica] ?? 0) / elapsed_seconds) : 0;
}

function ProgressFacts({ progress, model }: { progress: InputProgress; model: DatasetSharding }) {
  const { epoch, given, steps } = progress;
  const shares = steps.map((_, replica) => waitedShare(progress, replica));
  const most = Math.max(0, ...shares);
  const behind = Math.min(...steps);
  const ahead = Math.max(...steps);
  const late = steps.flatMap((step, replica) => (step === behind ? [replica] : []));
  return (
    <>
      <Counted name="epoch" text={String(epoch)} />
      <Counted name="begun" text={`${count(given)}${model.limit ? "" : ` of ${count(model.steps)}`} steps`} />
      {behind < ahead && (
        <Counted name="behind" text={`replica ${runsOf(late)}, at step ${Math.max(0, behind)}`} />
      )}
      <Counted
        name="waited for input"
        text={`${percent(100 * Math.min(...shares))} to ${percent(100 * most)} of ${secondsText(progress.elapsed_seconds)}`}
        bad={most >= MUCH_WAITING}
      />
      {most >= MUCH_WAITING && (
        <Counted name="what takes that time" text="see the view Input, or explain()" />
      )}
    </>
  );
}

function Facts({ model }: { model: DatasetSharding }) {
  const replicas = model.hosts * model.replicas_per_host;
  const empty = model.readers.filter((reader) => reader.rows === 0).map((reader) => reader.replica);
  const starved = sumOf(model.readers, (reader) => reader.empty_steps);
  const least = Math.min(...model.counts);
  const most = Math.max(...model.counts);
  return (
    <dl class="wb-facts">
      <Counted name="elements" text={count(model.elements)} />
      <Counted
        name="replicas"
        text={`${replicas}${model.hosts > 1 ? ` = ${model.hosts} hosts × ${model.replicas_per_host}` : ""}`}
      />
      <Counted name="split" text={model.algorithm} />
      <Counted name="steps" text={count(model.steps)} />
      <Counted
        name="rows per replica"
        text={least === most ? count(least) : `${count(least)} to ${count(most)}`}
      />
      <Counted name="duplicates" text={count(model.duplicates)} bad={model.duplicates > 0} />
      <Counted
        name="dropped"
        text={model.dropped === null ? "unknown" : count(model.dropped)}
        bad={(model.dropped ?? 0) > 0}
      />
      {model.remainder.length > 0 && (
        <Counted
          name="last step"
          text={`${model.remainder.slice(0, 8).join(" ")}${model.remainder.length > 8 ? " …" : ""}`}
        />
      )}
      {model.progress && <ProgressFacts progress={model.progress} model={model} />}
      {empty.length > 0 && <Counted name="reads nothing" text={`replica ${empty.join(", ")}`} bad />}
      {starved > 0 && <Counted name="turns without rows" text={count(starved)} bad />}
    </dl>
  );
}

function Counted({ name, text, bad = false }: { name: string; text: string; bad?: boolean }) {
  return (
    <Fact name={name}>
      {bad && <Sign />}
      {text}
    </Fact>
  );
}

function Picture({ model, context }: Props) {
  const readers = model.readers;
  const steps = Math.max(1, ...readers.map((reader) => reader.readings.length));
  const followed =
    model.positions > 0 && readers.some((reader) => reader.readings.some((r) => r.ranges.length));
  const { progress } = model;
  const right = progress ? RIGHT_WAITING : RIGHT;
  const first = readers[0]?.readings[0]?.step ?? 0;
  const axis = stepsOf(progress?.sampled, context);
  const picked = axis.range && batchesOf(model, axis.range);
  const pointed = axis.pointed === null ? null : { first: axis.pointed, last: axis.pointed };
  const meant = batchesOf(model, pointed);
  const boxesOf = ({ ranges, rows, step }: Reading): readonly (readonly [first: number, last: number])[] =>
    followed ? ranges : rows ? [[step - first, step - first]] : [];
  const scale = (width: number) => (width - LEFT - right) / Math.max(1, followed ? model.positions : steps);
  const share = (step: number) => (steps > 1 ? (step - first) / (steps - 1) : 0.3);

  const paint = (painting: Painting) => {
    const { canvas, width, palette, cursor } = painting;
    const unit = scale(width);
    canvas.fillStyle = palette.quiet;
    const files = new Map(model.marks.map(([position, name]) => [LEFT + position * unit, name]));
    const begins = apart(
      [...files.keys()],
      (x) => x,
      () => 60,
    );
    begins.forEach((x, index) => {
      const room = (begins[index + 1] ?? width) - x; // narrower letters rather than one over the other
      canvas.fillText(`▏${files.get(x)!.split("/").at(-1)}`, x, TOP / 2, Math.min(120, room));
    });
    if (!model.marks.length) {
      canvas.fillText(followed ? `elements 0 to ${count(model.positions - 1)}` : "steps", LEFT, TOP / 2);
    }
    readers.forEach((reader, row) => {
      const y = TOP + row * ROW;
      const lit = isLit(context.selected, reader.replica) ? 1 : 0.4;
      canvas.globalAlpha = lit;
      canvas.fillStyle = palette.text;
      canvas.fillText(`r${reader.replica}${model.hosts > 1 ? ` host ${reader.host}` : ""}`, 2, y + ROW / 2);
      const waited = progress ? waitedShare(progress, reader.replica) : 0;
      const waits = progress ? ` · ${waited >= MUCH_WAITING ? "▲ " : ""}waits ${percent(100 * waited)}` : "";
      const rows = `${reader.rows === 0 ? "▲ " : ""}${count(reader.rows)} rows`;
      paintEnd(painting, rows + waits, width - 2, y + ROW / 2);
      canvas.strokeStyle = palette.line;
      canvas.strokeRect(LEFT + 0.5, y + 0.5, width - LEFT - right, ROW - 3);
      const now = progress?.steps[reader.replica] ?? null;
      for (const reading of reader.readings) {
        const boxes = boxesOf(reading);
        canvas.globalAlpha = !picked || picked.includes(reading.step) ? lit : 0.25;
        canvas.fillStyle = sequential(share(reading.step));
        for (const [first, last] of boxes) {
          const x = LEFT + first * unit;
          const w = Math.max(1, (last - first + 1) * unit - (unit > 3 ? 1 : 0));
          canvas.fillRect(x, y + 1, w, ROW - 4);
          const label = String(reading.step);
          if (w > 7 * label.length + 2) {
            canvas.fillStyle = textOn(share(reading.step));
            canvas.fillText(label, x + 3, y + ROW / 2);
            canvas.fillStyle = sequential(share(reading.step));
          }
        }
        if (meant.includes(reading.step))
          for (const [first, last] of boxes)
            paintColumn(painting, {
              left: LEFT + first * unit,
              top: y + 1,
              width: Math.max(2, (last - first + 1) * unit),
              height: ROW - 4,
            });
        const atCursor = cursor?.row === row && readers[row]!.readings[cursor.column] === reading;
        if (atCursor || reading.step === now) {
          canvas.strokeStyle = atCursor ? palette.text : palette.accent;
          canvas.lineWidth = 2;
          for (const [first, last] of boxes) {
            canvas.strokeRect(LEFT + first * unit, y + 1, Math.max(2, (last - first + 1) * unit), ROW - 4);
          }
          canvas.lineWidth = 1;
          if (reading.step === now && boxes.length) {
            canvas.fillStyle = palette.accent;
            canvas.fillText("▼", LEFT + boxes[0]![0] * unit - 1, y - 2);
          }
        }
      }
      canvas.globalAlpha = 1;
    });
  };
  /** How far a place is from what a replica reads, in elements. */
  const distance = (reading: Reading, x: number, width: number) => {
    const place = Math.floor((x - LEFT) / scale(width));
    return Math.min(...boxesOf(reading).map(([first, last]) => Math.max(first - place, place - last, 0)));
  };
  const at = (x: number, y: number, width: number): Cell | null => {
    const row = Math.floor((y - TOP) / ROW);
    const column = readers[row]?.readings.findIndex((reading) => distance(reading, x, width) === 0) ?? -1;
    return { row, column };
  };
  /** The step that reads what is closest to a place, whoever reads it. */
  const stepAt = (x: number, width: number) => {
    let [best, least] = [axis.pointed ?? 0, Infinity];
    for (const reading of readers.flatMap(({ readings }) => readings)) {
      const step = stepOf(model, reading.step);
      const far = distance(reading, x, width);
      if (step !== undefined && far < least) [best, least] = [step, far];
    }
    return best;
  };
  const hasSteps = readers.some(({ readings }) =>
    readings.some(({ step }) => stepOf(model, step) !== undefined),
  );
  const marked = pointed ?? axis.range;
  const describe = ({ row, column }: Cell) => {
    const reading = readers[row]!.readings[column];
    if (!reading) return `replica ${readers[row]!.replica}: no such step`;
    const now = progress?.steps[readers[row]!.replica] === reading.step ? " · ▼ is here" : "";
    const what = reading.rows ? `${counted(reading.rows, "row")}: ${reading.text}` : "nothing";
    return `replica ${readers[row]!.replica} · step ${reading.step} · ${what}${now}`;
  };
  return (
    <>
      <Facts model={model} />
      <Plane
        label={`Who reads what: ${counted(readers.length, "replica")}, ${counted(steps, "step")}`}
        hint="what a replica reads in a step"
        rows={readers.length}
        columns={steps}
        height={TOP + readers.length * ROW + BOTTOM}
        paint={paint}
        at={at}
        describe={describe}
        steps={axis}
        stepOf={({ row, column }) => stepOf(model, readers[row]!.readings[column]?.step ?? -1)}
        {...(hasSteps && { stepAt })}
        said={marked ? readText(model, marked, pointed ? meant : picked!) : ""}
        onPick={(cell) => context.select(readers[cell.row]!.replica)}
      />
      <div class="wb-legend">
        <span>step {first}</span>
        <Ramp />
        <span>step {first + steps - 1}</span>
        {steps < model.steps && (
          <span>
            {first === 0 ? `the first ${steps}` : steps} of {count(model.steps)} steps
          </span>
        )}
        {progress && (
          <span>▼ where each replica is{progress.epoch > 0 ? "; elements as in epoch 0" : ""}</span>
        )}
        {model.hidden_readers > 0 && (
          <span>
            {readers.length} replicas drawn, {model.hidden_readers} more alike
          </span>
        )}
        {model.limit && <span>{model.limit}</span>}
      </div>
    </>
  );
}

/** Rows of a global batch; of a dataset that does not describe it, those of the fullest step that is drawn. */
function batchOf(model: DatasetSharding): number {
  if (model.batch_size > 0) return model.batch_size;
  const rows: number[] = [];
  for (const { readings } of model.readers)
    readings.forEach((reading, index) => (rows[index] = (rows[index] ?? 0) + reading.rows));
  return Math.max(1, ...rows);
}

function WhatIf({ model, context }: Props) {
  const ask = context.ask;
  const asked = model.policy.split("→")[0]!;
  const batch = batchOf(model);
  const waiting = useRef(0);
  const [draft, setDraft] = useState({
    batch_size: batch,
    hosts: model.hosts,
    replicas_per_host: model.replicas_per_host,
    policy: POLICIES.includes(asked) ? asked : "AUTO",
  });
  if (!ask) return null;
  const number = (name: "batch_size" | "hosts" | "replicas_per_host", label: string, most: number) => (
    <label>
      {label}{" "}
      <input
        type="range"
        min={1}
        max={most}
        value={draft[name]}
        onInput={(event) => change({ [name]: Number(event.currentTarget.value) })}
      />{" "}
      {draft[name]}
    </label>
  );
  const change = (part: Partial<typeof draft>) => {
    const next = { ...draft, ...part };
    setDraft(next);
    clearTimeout(waiting.current);
    // While a slider moves nobody waits for the answers.
    waiting.current = setTimeout(() => ask({ kind: "what_if", ...next }), PAUSE_MS) as unknown as number;
  };
  return (
    <fieldset class="wb-form">
      <Quiet>What if</Quiet>
      {number("batch_size", "global batch", Math.max(64, 2 * batch))}
      {number("hosts", "hosts", 8)}
      {number("replicas_per_host", "replicas per host", 8)}
      <label>
        policy{" "}
        <select value={draft.policy} onChange={(event) => change({ policy: event.currentTarget.value })}>
          {POLICIES.map((policy) => (
            <option key={policy}>{policy}</option>
          ))}
        </select>
      </label>
    </fieldset>
  );
}

interface ReplicaLine {
  reader: Reader;
  step: number;
  waited: number;
  share: number;
}

/** Replica by replica where it is, and how long it waited. */
function ProgressTwin({ model, progress, context }: Props & { progress: InputProgress }) {
  const rows: ReplicaLine[] = model.readers.map((reader) => ({
    reader,
    step: progress.steps[reader.replica] ?? -1,
    waited: progress.waited_seconds[reader.replica] ?? 0,
    share: waitedShare(progress, reader.replica),
  }));
  const columns: Column<ReplicaLine>[] = [
    numeric("replica", ({ reader }) => reader.replica),
    numeric("at step", ({ step }) => (step < 0 ? null : step), count, { help: "its newest" }),
    numeric("rows in all", ({ reader }) => reader.rows, count, { rank: 2, help: "of the epoch" }),
    numeric("waited for input", ({ waited }) => waited, secondsText, { rank: 1, help: "so far" }),
    numeric("of the time", ({ share }) => 100 * share, percent, { help: "waited" }),
  ];
  return (
    <Table
      label={`Where replicas are in epoch ${progress.epoch}`}
      columns={columns}
      rows={rows}
      keyOf={({ reader }) => String(reader.replica)}
      {...selecting(context, ({ reader }: ReplicaLine) => reader.replica)}
    />
  );
}

interface Line {
  reader: Reader;
  reading: Reading;
}

function Twin({ model, context }: Props) {
  const rows: Line[] = model.readers.flatMap((reader) =>
    reader.readings.map((reading) => ({ reader, reading })),
  );
  const axis = stepsOf(model.progress?.sampled, context);
  const columns: Column<Line>[] = [
    numeric("step", ({ reading }) => reading.step),
    numeric("replica", ({ reader }) => reader.replica),
    numeric("host", ({ reader }) => reader.host, String, { rank: 2 }),
    numeric("rows", ({ reading }) => reading.rows, count, { rank: 1, help: "how many" }),
    named("elements", ({ reading }) => reading.text || NOTHING, { least: 120, help: "which" }),
  ];
  return (
    <>
      {model.progress && <ProgressTwin model={model} progress={model.progress} context={context} />}
      <Table
        label="Who reads what"
        columns={columns}
        rows={rows}
        keyOf={({ reader, reading }) => `${reading.step}|${reader.replica}`}
        {...selecting(context, ({ reader }: Line) => reader.replica)}
        isPointed={({ reading }) => axis.pointed !== null && stepOf(model, reading.step) === axis.pointed}
        onPoint={(line) => axis.point((line && stepOf(model, line.reading.step)) ?? null)}
      />
    </>
  );
}
