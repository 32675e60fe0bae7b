// Who comes last, step by step: one cell each, quiet if nobody waits.
import { joined, timeText } from "../format";
import type { GroupView } from "../models";
import {
  type Cell,
  paintBox,
  paintCursor,
  paintEnd,
  paintLabel,
  paintText,
  type Painting,
} from "../parts/painting";
import { levels, Levels, scaleOf } from "./late_levels";
import { Plane } from "../parts/plane";
import { paintColumn, stepsOf } from "../parts/steps";
import { wording } from "../parts/terms";
import { strengthOf } from "../selection";
import type { Context } from "../view";
import { cellsOf, paintSteps, stepAt } from "./gutters";
import { latenessOf, lateSteps, type Row } from "./rows";

const TOP = 5;
const BOTTOM = 22;
/** The height of a cell. */
const [LEAST, MOST] = [14, 64];

/** The greatest height of the chart. */
export function latenessMost(rows: number): number {
  return TOP + BOTTOM + rows * MOST;
}

export function LatenessLegend({ group }: { group: GroupView }) {
  const { peak } = scaleOf(group.lateness.late_us);
  return (
    <>
      on time
      <Levels />
      {timeText(peak)} late
    </>
  );
}

interface Props {
  group: GroupView;
  rows: readonly Row[];
  /** The steps that the lanes show. */
  shown: { first: number; last: number };
  context: Context;
  /** Marks stragglers, and steps that were slow for all. Names are short; the line of text has the long ones. */
  slow?: boolean;
}

export function LatenessCells({ group, rows, shown, context, slow = false }: Props) {
  const { lateness } = group;
  const top = slow ? 16 : TOP;
  const axis = stepsOf(group, context);
  const late = rows.map((row) => latenessOf(group, row));
  const level = levels(lateness);
  const paint = (painting: Painting) => {
    const { canvas, width, palette, cursor, rowHeight: height } = painting;
    const { left, right, first, size } = cellsOf(lateness.steps.length, width);
    const gap = size > 6 ? 1 : 0.5;
    const foot = top + rows.length * height;
    rows.forEach((row, index) => {
      const y = top + index * height;
      const named = lateness.stragglers.includes(row.replica);
      canvas.globalAlpha = strengthOf(context.selected, row.replica);
      const label = slow
        ? `${named ? "▶ " : ""}${wording(`replica ${row.replica}`, `r${row.replica}`)}`
        : row.label;
      paintLabel(painting, { ...row, label }, y + height / 2, named);
      late[index]!.slice(first).forEach((us, column) => {
        if (us === null) return;
        const colour = palette.lateness[level(us)]!;
        paintBox(painting, colour, left + column * size, y + 0.5, size - gap, height - 1);
      });
      if (right && row.replica >= 0) {
        const colour = named ? palette.warning : palette.quiet;
        const text = `${lateSteps(group, row)} of ${lateness.steps.length}`;
        paintEnd(painting, colour, text, width - 2, y + height / 2, named);
      }
      canvas.globalAlpha = 1;
    });
    if (slow)
      for (const step of lateness.slow_steps) {
        const x = left + (lateness.steps.indexOf(step) - first) * size;
        paintText(painting, palette.quiet, "▼", x, top / 2);
      }
    paintSteps(painting, {
      ...{ steps: lateness.steps, first, size, left, shown },
      ...{ range: axis.range, top, foot },
    });
    const column = lateness.steps.indexOf(axis.pointed ?? -1) - first;
    if (column >= 0)
      paintColumn(painting, {
        left: left + column * size - 0.5,
        top: top - 3,
        width: size,
        height: foot - top + 6,
      });
    if (cursor && cursor.column >= first)
      paintCursor(painting, {
        x: left + (cursor.column - first) * size - 0.5,
        y: top + cursor.row * height,
        width: size,
        height,
      });
  };
  const at = (px: number, py: number, width: number, height: number): Cell | null => {
    const { left, first, size } = cellsOf(lateness.steps.length, width);
    const column = first + Math.floor((px - left) / size);
    return column < first ? null : { row: Math.floor((py - top) / height), column };
  };
  const describe = ({ row, column }: Cell) => {
    const us = late[row]![column] ?? null;
    const how =
      us === null ? "no record" : us < lateness.enough_us ? "on time" : `${timeText(us)} after the first`;
    const step = lateness.steps[column]!;
    const isSlow = lateness.slow_steps.includes(step) && "a step slow for everybody";
    return joined([`${rows[row]!.label}, step ${step}: ${how}`, isSlow]);
  };
  return (
    <Plane
      label={`How late ${rows.length} replicas came in ${lateness.steps.length} steps`}
      hint="how late a replica was in a step"
      rows={rows.length}
      columns={lateness.steps.length}
      height={top + BOTTOM}
      rowHeights={[LEAST, rows.length > 8 ? 16 : 24, MOST]}
      paint={paint}
      at={at}
      steps={axis}
      stepOf={({ column }) => lateness.steps[column]}
      stepAt={(x, width) => stepAt(lateness.steps, x, width)}
      describe={describe}
      replicaOf={({ row }) => rows[row]!.replica}
    />
  );
}
