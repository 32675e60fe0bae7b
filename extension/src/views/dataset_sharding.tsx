// Elements on x, replicas on y: who reads what at which step, why, and what another layout would do.
import { useState } from "preact/hooks";
import { BAD, sequential, textOn } from "../colours";
import { ChartOrTable, Sign } from "../parts/head";
import { Plane, type Cell, type Painting } from "../parts/plane";
import { Table, type Column } from "../parts/table";
import { count, counted, NOTHING } from "../format";
import type { DatasetSharding, Reader, Reading } from "../models";
import type { Context, View } from "../view";

const ROW = 22;
const TOP = 18;
const BOTTOM = 6;
const LEFT = 96;
const RIGHT = 64;
const POLICIES = ["AUTO", "FILE", "DATA", "HINT", "OFF"];

export const datasetSharding: View<DatasetSharding> = {
  title: "Dataset sharding",
  draw({ model, context }) {
    return (
      <>
        <ChartOrTable
          title="DistributedDataset"
          facts={[model.reason]}
          chart={<Picture model={model} context={context} />}
          table={<Twin model={model} context={context} />}
        >
          <span class="wb-pill">policy {model.policy}</span>
        </ChartOrTable>
        <WhatIf model={model} context={context} />
      </>
    );
  },
};

function Facts({ model }: { model: DatasetSharding }) {
  const replicas = model.hosts * model.replicas_per_host;
  const empty = model.readers.filter((reader) => reader.rows === 0).map((reader) => reader.replica);
  const starved = model.readers.reduce((sum, reader) => sum + reader.empty_steps, 0);
  const least = Math.min(...model.counts);
  const most = Math.max(...model.counts);
  return (
    <dl class="wb-facts">
      <Fact name="elements" text={count(model.elements)} />
      <Fact
        name="replicas"
        text={`${replicas}${model.hosts > 1 ? ` = ${model.hosts} hosts × ${model.replicas_per_host}` : ""}`}
      />
      <Fact name="split" text={model.algorithm} />
      <Fact name="steps" text={count(model.steps)} />
      <Fact
        name="rows per replica"
        text={least === most ? count(least) : `${count(least)} to ${count(most)}`}
      />
      <Fact name="duplicates" text={count(model.duplicates)} bad={model.duplicates > 0} />
      <Fact
        name="dropped"
        text={model.dropped === null ? "unknown" : count(model.dropped)}
        bad={(model.dropped ?? 0) > 0}
      />
      {model.remainder.length > 0 && (
        <Fact
          name="last step"
          text={`${model.remainder.slice(0, 8).join(" ")}${model.remainder.length > 8 ? " …" : ""}`}
        />
      )}
      {empty.length > 0 && <Fact name="reads nothing" text={`replica ${empty.join(", ")}`} bad />}
      {starved > 0 && <Fact name="turns without rows" text={count(starved)} bad />}
    </dl>
  );
}

function Fact({ name, text, bad = false }: { name: string; text: string; bad?: boolean }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {bad && <Sign sign="▲" colour={BAD} />}
        {text}
      </dd>
    </div>
  );
}

function Picture({ model, context }: { model: DatasetSharding; context: Context }) {
  const readers = model.readers;
  const steps = Math.max(1, ...readers.map((reader) => reader.readings.length));
  const followed =
    model.positions > 0 && readers.some((reader) => reader.readings.some((r) => r.ranges.length));
  const scale = (width: number) => (width - LEFT - RIGHT) / Math.max(1, followed ? model.positions : steps);
  const share = (step: number) => (steps > 1 ? step / (steps - 1) : 0.3);

  const paint = ({ canvas, width, palette, cursor }: Painting) => {
    const unit = scale(width);
    let lastMark = -Infinity;
    canvas.fillStyle = palette.quiet;
    for (const [position, name] of model.marks) {
      const x = LEFT + position * unit;
      if (x - lastMark < 60) continue;
      lastMark = x;
      canvas.fillText(`▏${name.split("/").at(-1)}`, x, TOP / 2, 120);
    }
    if (!model.marks.length) {
      canvas.fillText(followed ? `elements 0 to ${count(model.positions - 1)}` : "steps", LEFT, TOP / 2);
    }
    readers.forEach((reader, row) => {
      const y = TOP + row * ROW;
      canvas.globalAlpha =
        context.selected.replica === null || context.selected.replica === reader.replica ? 1 : 0.4;
      canvas.fillStyle = palette.text;
      canvas.fillText(`r${reader.replica}${model.hosts > 1 ? ` host ${reader.host}` : ""}`, 2, y + ROW / 2);
      canvas.textAlign = "right";
      canvas.fillText(`${reader.rows === 0 ? "▲ " : ""}${count(reader.rows)} rows`, width - 2, y + ROW / 2);
      canvas.textAlign = "left";
      canvas.strokeStyle = palette.line;
      canvas.strokeRect(LEFT + 0.5, y + 0.5, width - LEFT - RIGHT, ROW - 3);
      for (const reading of reader.readings) {
        const boxes = followed ? reading.ranges : reading.rows ? [[reading.step, reading.step] as const] : [];
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
        const atCursor = cursor?.row === row && readers[row]!.readings[cursor.column] === reading;
        if (atCursor || reading.step === model.cursor) {
          canvas.strokeStyle = atCursor ? palette.text : palette.accent;
          canvas.lineWidth = 2;
          for (const [first, last] of boxes) {
            canvas.strokeRect(LEFT + first * unit, y + 1, Math.max(2, (last - first + 1) * unit), ROW - 4);
          }
          canvas.lineWidth = 1;
        }
      }
      canvas.globalAlpha = 1;
    });
  };
  const at = (x: number, y: number, width: number): Cell | null => {
    const row = Math.floor((y - TOP) / ROW);
    const reader = readers[row];
    const position = (x - LEFT) / scale(width);
    const column = reader?.readings.findIndex((reading) =>
      followed
        ? reading.ranges.some(([first, last]) => position >= first && position < last + 1)
        : Math.floor(position) === reading.step,
    );
    return column === undefined || column < 0 ? null : { row, column };
  };
  const describe = ({ row, column }: Cell) => {
    const reading = readers[row]!.readings[column];
    if (!reading) return `replica ${readers[row]!.replica}: no such step`;
    const what = reading.rows ? `${counted(reading.rows, "row")}: ${reading.text}` : "nothing";
    return `replica ${readers[row]!.replica} · step ${reading.step} · ${what}`;
  };
  return (
    <>
      <Facts model={model} />
      <Plane
        label={`Who reads what: ${counted(readers.length, "replica")}, ${counted(steps, "step")}`}
        hint="arrow keys or pointer: what a replica reads in a step"
        rows={readers.length}
        columns={steps}
        height={TOP + readers.length * ROW + BOTTOM}
        paint={paint}
        at={at}
        describe={describe}
        onPick={(cell) => context.select(readers[cell.row]!.replica)}
      />
      <div class="wb-legend">
        <span>step 0</span>
        <span
          aria-hidden="true"
          style={{
            width: "140px",
            height: "10px",
            background: `linear-gradient(90deg,${[0, 0.25, 0.5, 0.75, 1].map(sequential).join(",")})`,
          }}
        />
        <span>step {steps - 1}</span>
        {steps < model.steps && (
          <span>
            the first {steps} of {count(model.steps)} steps
          </span>
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

function WhatIf({ model, context }: { model: DatasetSharding; context: Context }) {
  const ask = context.ask;
  const asked = model.policy.split("→")[0]!;
  const first = model.readers.reduce((sum, reader) => sum + (reader.readings[0]?.rows ?? 0), 0);
  const [draft, setDraft] = useState({
    batch_size: first || 1,
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
        onInput={(event) => change({ [name]: Number((event.currentTarget as HTMLInputElement).value) })}
      />{" "}
      {draft[name]}
    </label>
  );
  const change = (part: Partial<typeof draft>) => {
    const next = { ...draft, ...part };
    setDraft(next);
    ask({ kind: "what_if", ...next });
  };
  return (
    <fieldset class="wb-form" style={{ border: "none", padding: 0, margin: "8px 0 0" }}>
      <span class="wb-quiet">What if</span>
      {number("batch_size", "global batch", Math.max(64, 2 * first))}
      {number("hosts", "hosts", 8)}
      {number("replicas_per_host", "replicas per host", 8)}
      <label>
        policy{" "}
        <select
          value={draft.policy}
          onChange={(event) => change({ policy: (event.currentTarget as HTMLSelectElement).value })}
        >
          {POLICIES.map((policy) => (
            <option key={policy}>{policy}</option>
          ))}
        </select>
      </label>
    </fieldset>
  );
}

interface Line {
  reader: Reader;
  reading: Reading;
}

function Twin({ model, context }: { model: DatasetSharding; context: Context }) {
  const rows: Line[] = model.readers.flatMap((reader) =>
    reader.readings.map((reading) => ({ reader, reading })),
  );
  const columns: Column<Line>[] = [
    { title: "step", text: ({ reading }) => String(reading.step), order: ({ reading }) => reading.step },
    { title: "replica", text: ({ reader }) => String(reader.replica), order: ({ reader }) => reader.replica },
    { title: "host", text: ({ reader }) => String(reader.host), order: ({ reader }) => reader.host },
    { title: "rows", text: ({ reading }) => count(reading.rows), order: ({ reading }) => reading.rows },
    { title: "elements", left: true, text: ({ reading }) => reading.text || NOTHING },
  ];
  return (
    <Table
      label="Who reads what"
      columns={columns}
      rows={rows}
      keyOf={({ reader, reading }) => `${reading.step}|${reader.replica}`}
      isSelected={({ reader }) => reader.replica === context.selected.replica}
      onPick={({ reader }) => context.select(reader.replica)}
    />
  );
}
