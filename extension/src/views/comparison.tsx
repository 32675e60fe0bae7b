// Two recorded runs side by side: medians with their spread, and whether the difference exceeds chance.
import { category, GOOD } from "../colours";
import { ChartOrTable } from "../parts/head";
import { Sign } from "../parts/status";
import { Key } from "../parts/marks";
import {
  paintBox,
  paintCursor,
  paintLine,
  paintOutline,
  paintText,
  type Cell,
  type Painting,
} from "../parts/painting";
import { Plane } from "../parts/plane";
import { named, numeric, Table, type Column } from "../parts/table";
import { replicasText } from "../parts/terms";
import { apart, logarithmic, logTicks } from "../scale";
import {
  count,
  counted,
  dtypeText,
  NOTHING,
  rateText,
  significant,
  sizeText,
  timeText,
  timeUnit,
  known,
} from "../format";
import type { ComparedRow, Runs, Spread } from "../models";
import { Note } from "../parts/small";

const ROW = 34;
const TOP = 6;
const BOTTOM = 22;
const MAX_ROWS = 32;
const RIGHT = 118;
const NARROW = 440; // in a narrower chart, names and findings are short; the line below and the table have them in full
const RIGHT_NARROW = 58;
const CHARACTER = 6.6; // its width in px

export function Comparison({ model }: { model: Runs }) {
  const [first, second] = model.compared as [string, string];
  const slower = model.rows.filter((row) => row.verdict === "slower");
  const faster = model.rows.filter((row) => row.verdict === "faster");
  return (
    <ChartOrTable
      title={`${second} compared with ${first}`}
      facts={[
        slower.length > 0 && `▲ slower: ${opsOf(slower)}`,
        faster.length > 0 && `▼ faster: ${opsOf(faster)}`,
        !slower.length && !faster.length && "no difference that can be told from chance",
      ]}
      chart={<Chart rows={model.rows} names={[first, second]} />}
      table={<Twin rows={model.rows} names={[first, second]} />}
    />
  );
}

type Names = readonly [string, string];

function Chart({ rows, names }: { rows: readonly ComparedRow[]; names: Names }) {
  const shown = rows.filter((row) => row.first || row.second).slice(0, MAX_ROWS);
  const all = known(shown.flatMap((row) => [row.first, row.second]));
  if (!all.length) return <Note>no collectives in either</Note>;
  const lowest = Math.max(1e-3, Math.min(...all.map((one) => one.p25_us)));
  const highest = Math.max(lowest * 2, ...all.map((one) => one.p75_us));
  const name = (row: ComparedRow, width: number) =>
    width < NARROW ? `${row.op} ${sizeText(row.size_bytes)}` : nameOf(row);
  const marginOf = (width: number) =>
    16 + CHARACTER * Math.max(...shown.map((row) => name(row, width).length));
  const rightOf = (width: number) => (width < NARROW ? RIGHT_NARROW : RIGHT);
  const scale = (width: number) => {
    const margin = marginOf(width);
    return logarithmic(
      [lowest / 1.2, highest * 1.2],
      [margin, Math.max(margin + 60, width - rightOf(width))],
    );
  };

  const paint = (painting: Painting) => {
    const { width, palette, cursor } = painting;
    const x = scale(width);
    const margin = marginOf(width);
    const foot = TOP + shown.length * ROW;
    const ticks = logTicks(lowest / 1.2, highest * 1.2);
    const labelled = apart(ticks, x, (tick) => CHARACTER * (timeText(tick).length + 1));
    for (const tick of ticks) {
      paintLine(painting, palette.line, 1, [
        [x(tick), TOP],
        [x(tick), foot],
      ]);
      if (labelled.includes(tick))
        paintText(painting, palette.quiet, timeText(tick), x(tick), foot + BOTTOM / 2, "center");
    }
    shown.forEach((row, index) => {
      const y = TOP + index * ROW;
      const write = (text: string, x: number) => paintText(painting, palette.text, text, x, y + ROW / 2);
      write(name(row, width), 2);
      const found = width < NARROW && row.ratio !== null ? `${significant(row.ratio)}×` : ratioText(row);
      write(found, width - rightOf(width) + 8);
      [row.first, row.second].forEach((spread, which) => {
        if (!spread) return;
        const middle = y + ROW * (which ? 0.68 : 0.32);
        const [from, at, to] = [spread.p25_us, spread.p50_us, spread.p75_us].map((us) =>
          x(Math.max(us, lowest / 1.2)),
        );
        const colour = category(which);
        paintLine(painting, colour, 2, [
          [from!, middle],
          [to!, middle],
        ]);
        // A full square and an empty one, so that colour is not the only sign.
        if (which) paintOutline(painting, colour, 2, at! - 3.5, middle - 3.5, 7, 7);
        else paintBox(painting, colour, at! - 4, middle - 4, 8, 8);
      });
      if (cursor?.row === index)
        paintCursor(painting, { x: margin - 4, y: y + 1, width: width - margin, height: ROW - 2 }, 1);
    });
  };
  const describe = (cell: Cell) => {
    const row = shown[cell.row]!;
    const one = (name: string, spread: Spread | null) =>
      spread
        ? `${name} ${timeText(spread.p50_us)} (${timeText(spread.p25_us)} to ${timeText(spread.p75_us)}, ${count(spread.samples)})`
        : `not in ${name}`;
    return `${nameOf(row)}: ${one(names[0], row.first)} · ${one(names[1], row.second)} · ${ratioText(row)}`;
  };
  return (
    <>
      <Plane
        label={`Transfer times of ${counted(shown.length, "kind")} of collective in ${names[0]} and ${names[1]}`}
        hint="one kind of collective · square: median, line: middle half"
        rows={shown.length}
        columns={1}
        height={TOP + shown.length * ROW + BOTTOM}
        paint={paint}
        at={(_, y) => ({ row: Math.floor((y - TOP) / ROW), column: 0 })}
        describe={describe}
      />
      <div class="wb-legend">
        <Key colour={category(0)} name={`■ ${names[0]}`} />
        <Key colour={category(1)} name={`□ ${names[1]}`} />
        {rows.length > shown.length && <span>… {count(rows.length - shown.length)} more in the table</span>}
      </div>
    </>
  );
}

function Twin({ rows, names }: { rows: readonly ComparedRow[]; names: Names }) {
  const unit = timeUnit(
    rows.flatMap((row) => [row.first, row.second]).flatMap((one) => (one ? [one.p50_us] : [])),
  );
  const figures = (name: string, of: (row: ComparedRow) => Spread | null): Column<ComparedRow>[] => [
    {
      title: `median ${name}`,
      term: `p50 ${name}`,
      rank: 2,
      help: `transfer time in ${unit.name}`,
      text: (row) => significant(of(row) === null ? null : of(row)!.p50_us / unit.us),
      order: (row) => of(row)?.p50_us ?? -1,
    },
    {
      title: `middle half ${name}`,
      rank: 4,
      help: `from the first to the third quartile, in ${unit.name}`,
      text: (row) => {
        const spread = of(row);
        return spread
          ? `${significant(spread.p25_us / unit.us)}–${significant(spread.p75_us / unit.us)}`
          : NOTHING;
      },
      order: (row) => (of(row) ? of(row)!.p75_us - of(row)!.p25_us : -1),
    },
    numeric(`times ${name}`, (row) => of(row)?.samples ?? null, count, {
      rank: 6,
      help: "how many collectives",
    }),
    numeric(`bandwidth ${name}`, (row) => of(row)?.busbw ?? null, rateText, {
      term: `busbw ${name}`,
      rank: 5,
      help: "bus bandwidth at the median",
    }),
  ];
  const columns: Column<ComparedRow>[] = [
    named("operation", (row) => row.op, { term: "op" }),
    named("reduction", (row) => row.redop || NOTHING, { term: "redop" }),
    numeric("size", (row) => row.size_bytes, sizeText),
    named("type", (row) => dtypeText(row.dtype), { rank: 3, term: "dtype" }),
    numeric("replicas", (row) => row.n, String, { rank: 3, term: "n" }),
    named("time ratio", ratioText, {
      help: "second median over first",
      show: (row) => <Ratio row={row} />,
      order: (row) => row.ratio ?? -1,
    }),
    numeric("in all", (row) => row.difference_seconds, signedTime, {
      rank: 1,
      help: "what the difference of the medians makes over the second run",
    }),
    ...figures(names[0], (row) => row.first),
    ...figures(names[1], (row) => row.second),
  ];
  return (
    <Table label={`${names[0]} and ${names[1]}`} columns={columns} rows={rows} keyOf={(row) => row.key} />
  );
}

export function ratioText(row: ComparedRow): string {
  return row.ratio === null ? row.verdict : `${significant(row.ratio)}× ${row.verdict}`;
}

function Ratio({ row }: { row: ComparedRow }) {
  return (
    <>
      {row.verdict === "slower" && <Sign />}
      {row.verdict === "faster" && <Sign sign="▼" colour={GOOD} />} {ratioText(row)}
    </>
  );
}

function signedTime(seconds: number | null): string {
  if (seconds === null) return NOTHING;
  return `${seconds < 0 ? "−" : "+"}${timeText(Math.abs(seconds) * 1e6)}`;
}

function nameOf(row: ComparedRow): string {
  return `${row.op}${row.redop && ` ${row.redop}`} ${dtypeText(row.dtype)} ${sizeText(row.size_bytes)} ${replicasText(row.n)}`;
}

function opsOf(rows: readonly ComparedRow[]): string {
  return [...new Set(rows.map((row) => row.op))].join(", ");
}
