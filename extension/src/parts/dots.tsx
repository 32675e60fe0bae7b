// Figures of replicas or hosts in order: a dot each, or a numbered ring if they are few; the median as a line, the
// middle half as a band, and outliers by name.
import { ascending, figure, known } from "../format";
import { gutters } from "../overview/gutters";
import { clamped, linear, roundTicks } from "../scale";
import { FADED } from "../selection";
import {
  paintBox,
  paintDot,
  paintEnd,
  paintLabel,
  paintLine,
  paintNewest,
  paintText,
  paintTicks,
  type Painting,
} from "./painting";
import { Plane } from "./plane";

const TOP = 16;
const FOOT = 20;
/** Between rows. */
const GAP = 18;
/** The height of a name. */
const LINE = 14;
/** How far to draw on either side of the band, in widths of the band. */
const REACH = 1.5;
/** Of a ring. */
const RADIUS = 9;

/**
 * Outliers are this many widths of the middle half outside of it; at most this many get a name. As in
 * workbench/ui/inspect/spread.py.
 */
const FENCE = 3;
const MOST_NAMED = 8;

/** Up to this many replicas have a ring each. */
export const MOST_RINGS = 32;

export interface DotsRow {
  name: string;
  values: readonly (number | null)[];
  /** The band, and the line with its name. */
  low: number;
  high: number;
  middle: number;
  word: string;
}

/** A row of known values, and how far each is from the others; differences of `least` tell nothing. */
export function rowOf(name: string, values: readonly number[], least = 1) {
  const ordered = ascending(values);
  const at = (share: number) => ordered[Math.round(share * (ordered.length - 1))]!;
  const [from, to] = [at(0.25), at(0.75)];
  const width = Math.max(to - from, least); // where nearly all are equal, none is an outlier
  const far = values.map((value) => Math.max(from - value, value - to) / width);
  return { name, values, low: at(0.1), middle: at(0.5), high: at(0.9), word: "median", far };
}

/** The columns of outliers in any of the rows: the farthest first, and only a few. */
export function farOf(rows: readonly ReturnType<typeof rowOf>[]): number[] {
  const of = (column: number) => Math.max(...rows.map(({ far }) => far[column]!));
  const columns = [...rows[0]!.far.keys()].filter((column) => of(column) > FENCE);
  return columns.sort((one, other) => of(other) - of(one)).slice(0, MOST_NAMED);
}

interface Props {
  label: string;
  rows: readonly DotsRow[];
  /** What a dot stands for. */
  nameOf(column: number): string;
  /** The outliers. */
  outliers?: readonly number[] | undefined;
  /** Whether they are rings with the numbers of replicas. */
  rings?: boolean;
  isLit?(column: number): boolean;
  onPick?(column: number): void;
  /** The height of a row, by itself and at most in a pane. */
  heights: readonly [usual: number, most: number];
}

export function Dots({ label, rows, nameOf, outliers = [], rings, isLit, onPick, heights }: Props) {
  const columns = rows[0]!.values.length;
  const edges = (width: number) => {
    const { left, right } = gutters(width);
    return { left, right: width - right };
  };
  const x = (width: number) => {
    const { left, right } = edges(width);
    return linear([-0.5, columns - 0.5], [left, right]);
  };
  const valueText = (value: number | null | undefined) => (value == null ? "not finite" : figure(value));
  const paint = (painting: Painting) => {
    const { canvas, width, palette, cursor, rowHeight: height } = painting;
    const { left, right } = edges(width);
    const place = x(width);
    rows.forEach(({ name, values, low, middle, high, word }, row) => {
      const top = TOP + row * height;
      const foot = top + height - GAP;
      const finite = known(values);
      // Far outliers are drawn at the edge, so that the others remain distinguishable.
      const reach = REACH * (high - low) || Infinity;
      const least = Math.max(low - reach, Math.min(...finite));
      const most = Math.min(high + reach, Math.max(...finite));
      const scale = linear(least < most ? [least, most] : [least - 1, least + 1], [foot, top]);
      const y = (value: number | null | undefined) =>
        value == null ? top - 8 : clamped(scale(value), top, foot);
      if (!rings) paintBox(painting, palette.accent, left, y(high), right - left, y(low) - y(high), 0.14);
      const ticks = least < most ? roundTicks(least, most, Math.min(5, height / 48)) : [least];
      paintTicks(painting, ticks, y, { left, right });
      if (!rings) paintLabel(painting, { label: name, replica: -1 }, (top + foot) / 2, false, 56);
      const dot = (column: number, radius: number) =>
        paintDot(painting, place(column), y(values[column]), radius);
      paintLine(painting, palette.text, 1.4, [
        [left, y(middle)],
        [right, y(middle)],
      ]);
      if (right < width) paintNewest(painting, figure(middle), word, y(middle));
      values.forEach((value, column) => {
        canvas.fillStyle = value === null ? palette.error : palette.communicate;
        canvas.globalAlpha = isLit?.(column) === false ? FADED : rings ? 1 : 0.8;
        if (!rings || value === null) dot(column, 2);
        else {
          canvas.fillStyle = palette.replica(column)!;
          dot(column, RADIUS);
          canvas.fillStyle = palette.ground;
          dot(column, RADIUS - 2.5);
          paintText(painting, palette.text, String(column), place(column), y(value) + 0.5, "center");
        }
      });
      canvas.globalAlpha = 1;
      // Names that would overlap are placed below one another.
      const named: [from: number, to: number, y: number][] = [];
      for (const column of outliers) {
        const value = values[column] ?? null;
        if (value !== null && value >= low && value <= high) continue;
        canvas.fillStyle = value === null ? palette.error : palette.warning;
        dot(column, 4);
        const beyond = value === null ? "" : value > most ? " ↑" : value < least ? " ↓" : "";
        const text = `${nameOf(column)}: ${valueText(value)}${beyond}`;
        const room = canvas.measureText(text).width + 8;
        const from = place(column) + (place(column) + room + 8 > right ? -room : 8);
        let line = Math.min(y(value), foot - 6);
        while (named.some(([a, b, at]) => from < b && from + room > a && Math.abs(at - line) < LINE))
          line += LINE;
        named.push([from, from + room, line]);
        paintText(painting, palette.text, text, from, line);
      }
      if (cursor?.row === row) dot(cursor.column, 4);
    });
    paintText(painting, palette.quiet, nameOf(0), left, painting.height - 10);
    paintEnd(painting, palette.quiet, nameOf(columns - 1), right, painting.height - 10);
  };
  return (
    <Plane
      label={label}
      hint="a dot"
      rows={rows.length}
      columns={columns}
      height={TOP + FOOT}
      rowHeights={[64, ...heights]}
      paint={paint}
      at={(px, py, width, height) => ({
        row: Math.floor((py - TOP) / height),
        column: Math.round(x(width).invert(px)),
      })}
      describe={({ row, column }) =>
        `${nameOf(column)}: ${rows[row]!.name} ${valueText(rows[row]!.values[column])}`
      }
      onPick={({ column }) => onPick?.(column)}
    />
  );
}
