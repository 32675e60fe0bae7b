// The distribution of an array's elements: a column per bin, whose edges and count keys, pointer and screen readers
// reach.
import { count, counted, figure, joined, percent, sumOf } from "../format";
import type { Summary } from "../models";
import { ChartOrTable } from "../parts/head";
import {
  paintBox,
  paintCursor,
  paintEnd,
  paintLine,
  paintText,
  type Cell,
  type Painting,
} from "../parts/painting";
import { Plane } from "../parts/plane";
import { Fact } from "../parts/small";
import { numeric, Table } from "../parts/table";
import { linear, roundTicks } from "../scale";

const LEFT = 56;
const TOP = 8;
/** The height of the columns: at least in a pane, by themselves, and at most in a pane. */
const HIGH = [64, 96, 480] as const;
const FOOT = 20;
/** Room for a number on the axis. */
const TICK = 64;

/** A part of the range, and how many of the counted elements are in it. */
interface Bin {
  from: number;
  to: number;
  elements: number;
  percent: number;
}

/** The bins of a histogram, in ascending order; none without a histogram. */
export function binsOf({ histogram, min, max }: Summary): Bin[] {
  const all = sumOf(histogram, (elements) => elements);
  // Not by their difference, which may be NaN even if both are numbers.
  const edge = (index: number) => {
    const place = index / histogram.length;
    return min! * (1 - place) + max! * place;
  };
  return histogram.map((elements, index) => ({
    from: edge(index),
    to: edge(index + 1),
    elements,
    percent: (100 * elements) / all,
  }));
}

/** If a histogram counts only some of the elements, how many of how many. */
export function countedOf({ histogram, shape, nan, inf }: Summary): string {
  const found = sumOf(histogram, (elements) => elements);
  const all = shape.reduce((product, size) => product * size, 1) - nan - inf;
  return found < all ? `${count(found)} of ${count(all)} elements counted` : "";
}

interface Props {
  summary: Summary;
  /** What it belongs to. */
  name: string;
}

export function Distribution({ summary, name }: Props) {
  const bins = binsOf(summary);
  const fullest = bins.reduce((one, other) => (other.elements > one.elements ? other : one));
  return (
    <ChartOrTable
      title="Histogram"
      facts={[
        name,
        `${bins.length} bins, each ${figure(fullest.to - fullest.from)} wide`,
        countedOf(summary),
      ]}
      chart={
        <div class="wb-beside">
          <Columns bins={bins} fullest={fullest} name={name} />
          <dl class="wb-numbers">
            <Fact name="mean">{figure(summary.mean)}</Fact>
            <Fact name="deviation">{figure(summary.std)}</Fact>
            <Fact name="smallest, largest">
              {figure(summary.min)}, {figure(summary.max)}
            </Fact>
            <Fact name="NaN, infinite">
              {count(summary.nan)}, {count(summary.inf)}
            </Fact>
          </dl>
        </div>
      }
      table={
        <Table
          label={`Histogram of ${name}`}
          columns={[
            numeric("from", (bin: Bin) => bin.from, figure, { help: "its lower edge" }),
            numeric("to", (bin: Bin) => bin.to, figure, { help: "its upper edge" }),
            numeric("elements", (bin: Bin) => bin.elements, count),
            numeric("part", (bin: Bin) => bin.percent, percent, { help: "of those that were counted" }),
          ]}
          rows={bins}
          keyOf={(bin) => bins.indexOf(bin)}
        />
      }
    />
  );
}

function rangeText({ from, to }: Bin): string {
  return `${figure(from)} to ${figure(to)}`;
}

function shareText({ elements, percent: part }: Bin): string {
  return `${counted(elements, "element")}, ${percent(part)}`;
}

function Columns({ bins, fullest, name }: { bins: readonly Bin[]; fullest: Bin; name: string }) {
  const most = fullest.elements;
  const [low, high] = [bins[0]!.from, bins.at(-1)!.to];
  const size = (width: number) => (width - LEFT) / bins.length;
  const paint = (painting: Painting) => {
    const { palette, cursor, width, rowHeight: room } = painting;
    const each = size(width);
    const foot = TOP + room;
    const height = (elements: number) => (elements ? Math.max(1, (room * elements) / most) : 0);
    for (const elements of [0, most])
      paintEnd(painting, palette.quiet, count(elements), LEFT - 8, foot - height(elements));
    bins.forEach(({ elements }, index) => {
      const tall = height(elements);
      paintBox(painting, palette.communicate, LEFT + index * each, foot - tall, each - 1, tall);
    });
    paintLine(painting, palette.quiet, 1, [
      [LEFT, foot + 0.5],
      [width, foot + 0.5],
    ]);
    const place = linear([low, high], [LEFT, width]);
    for (const tick of roundTicks(low, high, (width - LEFT) / TICK)) {
      const x = place(tick);
      paintLine(painting, palette.quiet, 1, [
        [x, foot],
        [x, foot + 4],
      ]);
      if (x > LEFT + 12 && x < width - 16)
        paintText(painting, palette.quiet, figure(tick), x, foot + 12, "center");
    }
    if (cursor)
      paintCursor(painting, { x: LEFT + cursor.column * each, y: TOP, width: each - 1, height: room });
  };
  return (
    <div>
      <Plane
        label={joined([
          `histogram of ${name}, ${bins.length} bins from ${figure(low)} to ${figure(high)}`,
          `most from ${rangeText(fullest)}`,
        ])}
        hint="a bin"
        rows={1}
        columns={bins.length}
        height={TOP + FOOT}
        rowHeights={HIGH}
        paint={paint}
        at={(x, _, width): Cell => ({ row: 0, column: Math.floor((x - LEFT) / size(width)) })}
        describe={({ column }) => `${rangeText(bins[column]!)} · ${shareText(bins[column]!)}`}
      />
    </div>
  );
}
