// Figures that were sampled from time to time, on the axis of a strategy's steps: one line each, the newest at the
// right.
import { percent } from "../format";
import type { SampledSteps } from "../models";
import { clamped, linear, roundTicks } from "../scale";
import type { Context } from "../view";
import {
  type Cell,
  paintArea,
  paintBox,
  paintDot,
  paintEnd,
  paintLabel,
  paintLine,
  paintText,
  type Painting,
} from "./painting";
import { Plane } from "./plane";
import { isIn, paintBand, paintRange, stepsOf } from "./steps";

/** The height of a row: at least, at most by itself, and at most in a pane. */
const [LEAST, USUAL, MOST] = [28, 72, 96];
/** How high a few rows are together by themselves, and at most in a pane. */
const [LOW, HIGH] = [288, 800];
const TOP = 6;
const BOTTOM = 18;
const LEFT = 100;
const RIGHT = 48;
/** Up to this many devices have a row each. */
export const MOST_ROWS = 16;

interface Course {
  name: string;
  /** The newest samples in percent, oldest first; fewer for devices that started later. */
  values: readonly (number | null)[];
}

interface Props {
  /** What it shows, as a heading. */
  title?: string;
  /** What it shows. */
  label: string;
  courses: readonly Course[];
  /** Where the samples are among the steps; without that, as in older recordings, only the curve is drawn. */
  sampled: SampledSteps | null | undefined;
  context: Context;
}

export function Courses({ title, label, courses, sampled, context }: Props) {
  const rows = courses.slice(0, MOST_ROWS);
  const samples = Math.max(0, ...rows.map(({ values }) => values.length));
  if (samples < 2) return null;
  const steps = sampled?.steps.slice(-samples) ?? [];
  // By step, the last sample in which it was the newest: there it ended, as far as is known.
  const ends = new Map(steps.flatMap((step, index) => (step < 0 ? [] : [[step, index] as const])));
  const known = [...ends.keys()];
  const axis = stepsOf(sampled, context);
  const span = known.length ? { first: known[0]!, last: known.at(-1)! } : null;
  const top = Math.max(100, ...rows.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const valueOf = ({ row, column }: Cell) => {
    const { values } = rows[row]!;
    return values[column - samples + values.length] ?? null;
  };
  const end = linear(known, [...ends.values()]); // used if some are known
  const scale = (width: number) => linear([0, samples - 1], [LEFT, width - RIGHT]);
  const paint = (painting: Painting) => {
    const { canvas, width, palette, cursor, rowHeight: height } = painting;
    const x = scale(width);
    const foot = TOP + rows.length * height;
    const y = (row: number, value: number) => TOP + (row + 1) * height - 4 - (value / top) * (height - 8);
    rows.forEach(({ name, values }, row) => {
      const middle = TOP + (row + 0.5) * height;
      paintLabel(painting, { label: name, replica: -1 }, middle, false, LEFT - 8);
      for (const level of height > MOST ? roundTicks(0, top, height / MOST) : [0, 100]) {
        paintBox(painting, palette.line, LEFT, y(row, level), width - RIGHT - LEFT, 1);
        if (height > MOST)
          paintEnd(
            painting,
            palette.quiet,
            percent(level),
            LEFT - 8,
            y(row, level) + (level % 100 ? 0 : level ? 6 : -6),
          );
      }
      const skipped = samples - values.length;
      const places = values.map((value, index) =>
        value === null ? null : ([x(skipped + index), y(row, value)] as const),
      );
      paintArea(painting, places, y(row, 0));
      paintLine(painting, palette.quiet, 1.3, places);
      paintEnd(painting, palette.quiet, percent(values.at(-1) ?? null), width - 2, middle);
    });
    const value = cursor && valueOf(cursor);
    if (value !== null) {
      canvas.fillStyle = palette.text;
      paintDot(painting, x(cursor!.column), y(cursor!.row, value), 3);
    }
    if (!span) return;
    paintText(painting, palette.quiet, `step ${span.first}`, x(ends.get(span.first)!), foot + 10);
    if (known.length > 1) paintEnd(painting, palette.quiet, `step ${span.last}`, width - RIGHT, foot + 10);
    const edges = (first: number, last: number) => ({
      from: x(clamped(end(first - 1), 0, samples - 1)),
      to: x(clamped(end(last), 0, samples - 1)),
      foot,
    });
    const { range, pointed } = axis;
    if (range && range.first <= span.last && range.last >= span.first)
      paintRange(painting, {
        ...edges(range.first, range.last),
        ...{ left: LEFT, right: width - RIGHT, top: TOP },
      });
    if (pointed !== null && isIn(span, pointed)) paintBand(painting, edges(pointed, pointed));
  };
  return (
    <>
      {title && <h4>{title}</h4>}
      <Plane
        label={`${label}: ${rows.length} in ${samples} samples`}
        hint="one sample"
        rows={rows.length}
        columns={samples}
        height={TOP + BOTTOM}
        rowHeights={[LEAST, clamped(LOW / rows.length, LEAST, USUAL), Math.max(MOST, HIGH / rows.length)]}
        paint={paint}
        at={(px, py, width, height) => ({
          row: Math.floor((py - TOP) / height),
          column: Math.round(scale(width).invert(px)),
        })}
        steps={axis}
        stepOf={({ column }) => steps[column]}
        {...(span && {
          stepAt: (px: number, width: number) =>
            clamped(Math.round(end.invert(scale(width).invert(px))), span.first, span.last),
        })}
        describe={(cell) => {
          const step = steps[cell.column] ?? -1;
          return `${rows[cell.row]!.name}${step < 0 ? "" : `, step ${step}`}: ${percent(valueOf(cell))}`;
        }}
      />
    </>
  );
}
