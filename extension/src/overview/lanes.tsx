// What each replica did in the newest steps: computed, was late, waited, communicated.
import { joined, percent, sizeText, timeText } from "../format";
import type { GroupView, LaneItem } from "../models";
import {
  type Cell,
  hatch,
  paintBox,
  paintCursor,
  paintDotted,
  paintEnd,
  paintLabel,
  paintText,
  type Painting,
  type Rectangle,
} from "../parts/painting";
import { Plane } from "../parts/plane";
import { isIn, paintBand, stepsOf } from "../parts/steps";
import { linear, roundTicks } from "../scale";
import { strengthOf } from "../selection";
import type { Context } from "../view";
import { gutters } from "./gutters";
import { Swatch } from "./module";
import { lanesBegin, type Pauses, pausesOf } from "./pauses";
import { lateSteps, type Row, timesOf, waitedOf } from "./rows";

const TOP = 20;
const BOTTOM = 24;
/** The height of a lane. */
const [LEAST, MOST] = [20, 48];
/** From this share of the step on, a replica is drawn as late, and others as waiting for it. */
const NOTABLE = 0.05;

/** From this width on, an activity has room for a time. */
const LABELLED = 52;

/** The greatest height of the lanes. */
export function lanesMost(rows: number): number {
  return TOP + BOTTOM + rows * MOST;
}

export const lanesLegend = (
  <>
    <Swatch kind="compute" name="compute" />
    <Swatch kind="communicate" name="communicate" />
    <Swatch kind="late" name="late" />
    <Swatch kind="wait" name="wait for it" />
  </>
);

interface Props {
  group: GroupView;
  rows: readonly Row[];
  steps: { first: number; last: number };
  /** Whether the newest step shown is the present one. */
  now: string;
  context: Context;
}

export interface Part {
  kind: "compute" | "late" | "wait" | "communicate";
  from: number;
  to: number;
}

export function LaneStrip({ group, rows, steps, now, context }: Props) {
  const { items } = group;
  const first = items.findIndex(({ step }) => step >= steps.first);
  const shown = items.filter(({ step }) => isIn(steps, step));
  const pauses = pausesOf(group);
  const { ends } = pauses;
  const from = lanesBegin(group, pauses, steps.first);
  const to = Math.max(...shown.map((item) => item.last_end_ns));
  const axis = stepsOf(group, context);
  const parts = rows.map((row) => partsOfRow(group, row, pauses));
  const scale = (width: number) => {
    const { left, right } = gutters(width);
    return linear([from, to], [left, width - right]);
  };
  const paint = (painting: Painting) => {
    const { canvas, width, palette, cursor, rowHeight: height } = painting;
    const { left, right } = gutters(width);
    const bar = height - 8;
    const x = scale(width);
    const foot = TOP + rows.length * height;
    const edge = width - right;
    let free = 0; // of names: from here on
    for (let step = steps.first; step <= steps.last; step++) {
      const begin = step === steps.first ? left : x(ends.get(step - 1) ?? from);
      const room = x(ends.get(step) ?? to) - begin;
      const name = room > 50 ? `step ${step}` : `${step}`;
      const end = begin + 5 + canvas.measureText(name).width;
      const named = begin >= free && end < edge;
      if (named) {
        paintText(painting, palette.quiet, name, begin + 4, TOP / 2);
        free = end;
      }
      if (step === steps.first) continue;
      paintDotted(painting, Math.round(begin) + 0.5, named ? 4 : TOP, foot);
    }
    rows.forEach((row, index) => {
      const y = TOP + index * height;
      const late = group.lateness.stragglers.includes(row.replica);
      const alpha = strengthOf(context.selected, row.replica);
      canvas.globalAlpha = alpha;
      paintLabel({ canvas, palette }, row, y + height / 2, late);
      for (const part of parts[index]!.flat()) {
        const begin = Math.max(left, x(part.from));
        const end = Math.min(edge, x(part.to));
        if (end <= left || begin >= edge) continue;
        const least = part.kind === "communicate" ? 2 : 0;
        const box = { x: begin, y: y + 4, width: Math.max(least, end - begin), height: bar };
        if (box.width < 0.3) continue;
        paintPart(painting, part, box, undefined, begin > left + 24);
      }
      // The history continues to the left.
      canvas.globalAlpha = 1;
      for (let column = 0; steps.first > 0 && column < 6; column++)
        paintBox(painting, palette.ground, left + 4 * column, y + 4, 4, bar, 1 - column / 6);
      canvas.globalAlpha = alpha;
      const colour = late ? palette.warning : palette.quiet;
      if (right) paintEnd(painting, colour, stateOf(group, row), width - 2, y + height / 2, late);
      canvas.globalAlpha = 1;
    });
    const { pointed } = axis;
    if (pointed !== null && pointed >= steps.first && pointed <= steps.last)
      paintBand(painting, {
        from: pointed === steps.first ? left : x(ends.get(pointed - 1) ?? from),
        to: x(ends.get(pointed) ?? to),
        foot,
      });
    paintBox(painting, palette.text, edge - 1.5, 2, 1.5, foot);
    const ms = linear([(from - to) / 1e6, 0], [left, edge]);
    const inSeconds = to - from > 4e9;
    for (const tick of roundTicks((from - to) / 1e6, 0, (edge - left) / 120)) {
      if (edge - ms(tick) < 64 || ms(tick) - left < 24) continue;
      paintBox(painting, palette.line, ms(tick), foot + 1, 1, 4);
      const size = Math.abs(tick);
      const text = `−${inSeconds ? `${size / 1000} s` : `${size} ms`}`;
      paintText(painting, palette.quiet, text, ms(tick), foot + 14, "center");
    }
    const [end, align] = right ? ([edge, "center"] as const) : ([width, "right"] as const);
    paintText(painting, palette.text, now, end - 2, foot + 14, align, true);
    const chosen = cursor && parts[cursor.row]?.[cursor.column];
    if (cursor && chosen?.length && isIn(steps, items[cursor.column]!.step)) {
      const begin = Math.max(left, x(chosen[0]!.from));
      const box = {
        x: begin,
        y: TOP + cursor.row * height + 3,
        width: x(chosen.at(-1)!.to) - begin,
        height: bar + 2,
      };
      paintCursor(painting, box, 1.5);
    }
  };
  const at = (px: number, py: number, width: number, height: number): Cell | null => {
    const row = Math.floor((py - TOP) / height);
    const ns = scale(width).invert(px);
    const column = parts[row]?.findIndex((one) => one.length > 0 && ns <= one.at(-1)!.to) ?? -1;
    const { left, right } = gutters(width);
    return px < left || px > width - right ? null : { row, column };
  };
  return (
    <Plane
      label={`What ${rows.length} replicas did in steps ${steps.first} to ${steps.last}`}
      hint="one collective"
      rows={rows.length}
      columns={items.length}
      height={TOP + BOTTOM}
      rowHeights={[LEAST, rows.length > 8 ? 24 : rows.length > 3 ? 32 : 40, MOST]}
      paint={paint}
      at={at}
      steps={axis}
      stepOf={({ column }) => items[column]?.step}
      stepAt={(px, width) => {
        const ns = scale(width).invert(px);
        return (shown.find((item) => ns <= item.last_end_ns) ?? shown.at(-1)!).step;
      }}
      within={[first, first + shown.length - 1]}
      describe={({ row, column }) => told(rows[row]!, items[column]!, parts[row]![column]!)}
      replicaOf={({ row }) => rows[row]!.replica}
    />
  );
}

/** Draws each activity of a replica in its own way; `colour` is that of the operation, where it matters. */
export function paintPart(
  painting: Painting,
  { kind, from, to }: Part,
  box: Rectangle,
  colour = painting.palette[kind],
  isLabelled = true,
): void {
  const { canvas, palette } = painting;
  const { x, y, width, height } = box;
  paintBox(painting, colour, x, y, width, height);
  if (kind === "wait") hatch(canvas, box, palette.waitLine);
  if (kind !== "late") return;
  paintBox(painting, palette.warning, x, y + height - 3, width, 3);
  // How late it is, which the length says only to whoever looks for the scale.
  if (isLabelled && width > LABELLED && height > 16)
    paintText(painting, "#000", timeText((to - from) / 1000), x + width / 2, y + height / 2 - 1, "center");
}

/**
 * For each collective, what a replica did between the end of its previous one and the end of this one. Pauses count as
 * unknown.
 */
export function partsOfRow(
  group: GroupView,
  row: Pick<Row, "replica" | "lane">,
  { start, since, usual }: Pauses,
): Part[][] {
  let before = start;
  return group.items.map((item, index) => {
    const times = timesOf(item, row);
    if (!times) return [];
    const found = partsOf(group, row, item, times, Math.max(before, since[index]!), usual);
    before = times.end;
    return found;
  });
}

/** What a replica did between the end of its previous collective, `before`, and the end of this one. */
export function partsOf(
  group: GroupView,
  row: Pick<Row, "replica">,
  item: LaneItem,
  times: { enter: number; end: number },
  before: number,
  usual: number,
): Part[] {
  const begin = Math.min(times.enter, before);
  const ready = Math.min(Math.max(item.ready_ns, times.enter), times.end);
  const others = group.n > 1 ? (item.mean_enter_ns * group.n - times.enter) / (group.n - 1) : times.enter;
  const notable = Math.max(item.err_ns, NOTABLE * usual);
  const isLate = row.replica >= 0 && times.enter >= item.ready_ns - 1 && times.enter - others > notable;
  const late = isLate ? Math.max(begin, others) : times.enter;
  const waits = ready - times.enter > notable;
  const parts: Part[] = [
    { kind: "compute", from: begin, to: waits || isLate ? late : ready },
    { kind: "late", from: late, to: times.enter },
    { kind: "wait", from: times.enter, to: waits ? ready : times.enter },
    { kind: "communicate", from: ready, to: times.end },
  ];
  return parts.filter((part) => part.to > part.from);
}

function stateOf(group: GroupView, row: Row): string {
  if (group.stuck?.waiting.includes(row.replica)) return "waits";
  if (group.stuck?.missing.includes(row.replica)) return "is missing";
  if (group.lateness.stragglers.includes(row.replica))
    return `late ${lateSteps(group, row)} of ${group.lateness.steps.length}`;
  const waited = waitedOf(group, row);
  return waited === null ? "" : `waited ${percent(waited)}`;
}

function told(row: Row, item: LaneItem, parts: readonly Part[]): string {
  const words = { compute: "computes", late: "is late by", wait: "waits", communicate: item.op } as const;
  const what = parts.map(({ kind, from, to }) => `${words[kind]} ${timeText((to - from) / 1000)}`);
  return joined([`${row.label}, step ${item.step}`, ...what, sizeText(item.size_bytes), item.site]);
}
