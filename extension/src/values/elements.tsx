// Elements of one replica's component as a heat map; the user chooses which, and they are fetched on request.
import { sequential, WARNING } from "../colours";
import { ChartOrTable } from "../parts/head";
import { Sign } from "../parts/status";
import { Ramp } from "../parts/marks";
import {
  hatch,
  paintBox,
  paintCursor,
  paintEnd,
  paintOutline,
  paintText,
  type Cell,
  type Painting,
} from "../parts/painting";
import { Plane } from "../parts/plane";
import { Table, type Column } from "../parts/table";
import { counted, figure } from "../format";
import type { Elements, InspectedValue } from "../models";
import { blended, clamped } from "../scale";
import type { Context, Request } from "../view";
import { Button } from "../parts/small";

const LEFT = 46;
const TOP = 16;
const MOST_WIDTH = 24;
const CLOSE_UP = 64;

type Wanted = Extract<Request, { kind: "elements" }>;

/** Requests the whole of the last two axes. */
export function wholeOf(value: number, replica: number, shape: readonly number[]): Wanted {
  const axes: [number, number] = [shape.length > 1 ? shape.length - 2 : -1, shape.length - 1];
  return {
    kind: "elements",
    value,
    replica,
    difference: false,
    axes,
    index: shape.map(() => 0),
    extent: [null, null],
  };
}

/** Requests the surroundings of a place, so close that each cell is one element. */
export function closeUp(wanted: Wanted, shape: readonly number[], place: readonly number[]): Wanted {
  const index = place.map((at, axis) => {
    if (!wanted.axes.includes(axis)) return at;
    return clamped(at - CLOSE_UP / 2, 0, Math.max(0, shape[axis]! - CLOSE_UP));
  });
  return { ...wanted, index, extent: [CLOSE_UP, CLOSE_UP] };
}

/** The indices on every axis of a position in C order. */
export function placeOf(position: number, shape: readonly number[]): number[] {
  const place: number[] = [];
  let rest = position;
  for (const size of [...shape].reverse()) {
    place.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return place;
}

interface Props {
  elements: Elements;
  value: InspectedValue;
  context: Context;
}

export function ElementsMap({ elements, value, context }: Props) {
  const { difference, replica, steps } = elements;
  const pooled = Math.max(...steps) > 1;
  const each = difference ? "the largest difference" : "the mean";
  return (
    <ChartOrTable
      title={`Elements of ${value.name || value.kind}`}
      facts={[
        indexText(elements),
        replica >= 0 && `replica ${replica}${difference ? " minus replica 0" : ""}`,
        pooled && `a cell is ${each} of ${steps[0]} × ${steps[1]} elements`,
      ]}
      chart={
        <>
          {context.ask && <Controls elements={elements} value={value} ask={context.ask} />}
          <Picture elements={elements} ask={context.ask} />
        </>
      }
      table={<Twin elements={elements} />}
    />
  );
}

function indexText({ index, shape, axes, extent }: Elements): string {
  const parts = index.map((place, axis) => {
    const side = axes.indexOf(axis);
    if (side < 0) return String(place);
    return extent[side] === shape[axis] ? ":" : `${place}:${place + extent[side]!}`;
  });
  return `[${parts.join(", ")}]`;
}

interface ControlsProps {
  elements: Elements;
  value: InspectedValue;
  ask(request: Request): void;
}

function Controls({ elements, value, ask }: ControlsProps) {
  const { shape, axes, index, extent, difference, replica } = elements;
  const now = wantedOf(elements);
  const change = (part: Partial<Wanted>) => ask({ ...now, ...part });
  const replicas = value.replicas.filter(({ summary }) => typeof summary !== "string");
  const windowed = axes.some((axis, side) => axis >= 0 && extent[side] !== shape[axis]);
  const whole = (over: Partial<Wanted>): Partial<Wanted> => {
    const shown = over.axes ?? axes;
    return {
      ...over,
      index: index.map((place, axis) => (shown.includes(axis) ? 0 : place)),
      extent: [null, null],
    };
  };
  const chooser = (side: 0 | 1, label: string) => (
    <label>
      {label}{" "}
      <select
        value={axes[side]}
        onChange={(event) => {
          const chosen = Number(event.currentTarget.value);
          const next: [number, number] = [...axes];
          if (chosen === next[1 - side]) next[1 - side] = next[side]!; // swaps the two
          next[side] = chosen;
          change(whole({ axes: next }));
        }}
      >
        {shape.map((size, axis) => (
          <option key={axis} value={axis}>{`axis ${axis}: ${size}`}</option>
        ))}
      </select>
    </label>
  );
  return (
    <fieldset class="wb-form" aria-label="What is shown">
      {replicas.length > 1 && (
        <label>
          replica{" "}
          <select
            value={replica}
            onChange={(event) => change({ replica: Number(event.currentTarget.value) })}
          >
            {replicas.map((one) => (
              <option key={one.replica} value={one.replica}>
                {one.replica}
              </option>
            ))}
          </select>
        </label>
      )}
      {replicas.length > 1 && (
        <label>
          <input
            type="checkbox"
            checked={difference}
            onChange={(event) => change({ difference: event.currentTarget.checked })}
          />{" "}
          minus replica 0
        </label>
      )}
      {shape.length > 1 && chooser(0, "down")}
      {shape.length > 1 && chooser(1, "right")}
      {shape.map((size, axis) =>
        axes.includes(axis) ? null : (
          <label key={axis}>
            axis {axis}{" "}
            <input
              type="range"
              min={0}
              max={size - 1}
              value={index[axis]}
              onChange={(event) => {
                const at = Number(event.currentTarget.value);
                change({ index: index.map((place, other) => (other === axis ? at : place)) });
              }}
            />{" "}
            {index[axis]}
          </label>
        ),
      )}
      {windowed && <Button onClick={() => change(whole({}))}>Zoom out</Button>}
    </fieldset>
  );
}

function wantedOf({ value, replica, difference, axes, index, extent }: Elements): Wanted {
  return { kind: "elements", value, replica, difference, axes, index, extent };
}

/** The range of the colours; for differences, symmetric around none. */
export function rangeOf(elements: Elements): { low: number; high: number } | null {
  const known = elements.cells.flat().filter((cell) => typeof cell === "number");
  if (!known.length) return null;
  if (!elements.difference) return { low: Math.min(...known), high: Math.max(...known) };
  const high = Math.max(...known.map(Math.abs));
  return { low: -high, high };
}

function Picture({ elements, ask }: { elements: Elements; ask: Context["ask"] }) {
  const { cells, axes, index, steps, shape, difference } = elements;
  const rows = cells.length;
  const columns = cells[0]?.length ?? 0;
  const range = rangeOf(elements);
  const h = clamped(Math.floor(260 / Math.max(1, rows)), 3, 18);
  const cellWidth = (width: number) => Math.min(MOST_WIDTH, (width - LEFT - 4) / Math.max(1, columns));
  const share = (cell: number) =>
    range && range.high > range.low ? (cell - range.low) / (range.high - range.low) : 0.5;
  const first = (side: 0 | 1) => (axes[side] >= 0 ? index[axes[side]]! : 0);
  const paint = (painting: Painting) => {
    const { canvas, width, palette, cursor } = painting;
    const w = cellWidth(width);
    const gap = w > 6 && h > 6 ? 1 : 0;
    const signed = [palette.less, palette.lateness[0]!, palette.more].map((colour) => colour.slice(1));
    cells.forEach((row, y) =>
      row.forEach((cell, x) => {
        const box = { x: LEFT + x * w, y: TOP + y * h, width: Math.max(1, w - gap), height: h - gap };
        if (typeof cell === "number") {
          const colour = difference ? blended(signed, share(cell)) : sequential(share(cell));
          paintBox(painting, colour, box.x, box.y, box.width + (gap ? 0 : 0.5), box.height);
          return;
        }
        const colour = palette[cell === "nan" ? "error" : "warning"];
        paintBox(painting, palette.ground, box.x, box.y, box.width, box.height);
        hatch(canvas, box, colour);
        const [wide, high] = [Math.max(1, box.width - 1), Math.max(1, box.height - 1)];
        paintOutline(painting, colour, 1, box.x + 0.5, box.y + 0.5, wide, high);
      }),
    );
    const every = Math.max(1, Math.ceil(44 / w));
    for (let x = 0; x < columns; x += every) {
      paintText(painting, palette.quiet, String(first(1) + x * steps[1]), LEFT + x * w, TOP / 2);
    }
    for (let y = 0; axes[0] >= 0 && y < rows; y += Math.max(1, Math.ceil(14 / h))) {
      const label = String(first(0) + y * steps[0]);
      paintEnd(painting, palette.quiet, label, LEFT - 5, TOP + (y + 0.5) * h);
    }
    if (cursor) {
      const box = { x: LEFT + cursor.column * w, y: TOP + cursor.row * h };
      paintCursor(painting, { ...box, width: Math.max(2, w - gap), height: h - gap });
    }
  };
  const at = (x: number, y: number, width: number) => ({
    row: Math.floor((y - TOP) / h),
    column: Math.floor((x - LEFT) / cellWidth(width)),
  });
  const describe = ({ row, column }: Cell) => {
    const cell = cells[row]![column]!;
    const many = steps[0] * steps[1] > 1;
    const what = difference ? (many ? "differs most by " : "differs by ") : many ? "mean " : "";
    return `[${placeText(elements, row, column)}]: ${typeof cell === "number" ? what + figure(cell) : `✖ ${cellText(cell)}`}`;
  };
  const onPick = ({ row, column }: Cell) => {
    if (!ask || Math.max(...steps) === 1) return;
    const place = [...index];
    if (axes[0] >= 0) place[axes[0]] = first(0) + Math.floor((row + 0.5) * steps[0]);
    if (axes[1] >= 0) place[axes[1]] = first(1) + Math.floor((column + 0.5) * steps[1]);
    ask(closeUp(wantedOf(elements), shape, place));
  };
  const zoom = ask && Math.max(...steps) > 1 ? ", Enter or click: close up" : "";
  return (
    <>
      <Plane
        label={`Elements: ${counted(rows, "row")}, ${counted(columns, "column")} of cells`}
        hint={`one cell${zoom}`}
        rows={rows}
        columns={columns}
        height={TOP + rows * h + 4}
        paint={paint}
        at={at}
        describe={describe}
        onPick={onPick}
      />
      <div class="wb-legend">
        {range && (
          <>
            <span>{figure(range.low)}</span>
            {difference ? <i class="wb-signed" aria-hidden /> : <Ramp />}
            <span>
              {difference && "+"}
              {figure(range.high)}
            </span>
          </>
        )}
        {cells.some((row) => row.includes("nan")) && (
          <span>
            <Sign sign="✖" /> hatched: NaN
          </span>
        )}
        {cells.some((row) => row.includes("inf") || row.includes("-inf")) && (
          <span>
            <Sign colour={WARNING} /> hatched: infinite
          </span>
        )}
      </div>
    </>
  );
}

/** The elements of a cell on every axis: "3, 16–31". */
function placeText({ axes, index, steps, extent }: Elements, row: number, column: number): string {
  return index
    .map((place, axis) => {
      const side = axes.indexOf(axis);
      if (side < 0) return String(place);
      const from = (side === 0 ? row : column) * steps[side]!;
      const to = Math.min(from + steps[side]!, extent[side]!) - 1;
      return from === to ? String(place + from) : `${place + from}–${place + to}`;
    })
    .join(", ");
}

function cellText(cell: number | string): string {
  if (typeof cell === "number") return figure(cell);
  return cell === "nan" ? "NaN" : cell === "inf" ? "∞" : "−∞";
}

/** The sort key of a column: NaN comes before everything else. */
export function orderOf(cell: number | string): number {
  if (typeof cell === "number") return cell;
  return cell === "inf" ? Infinity : -Infinity;
}

interface Line {
  row: number;
  cells: (number | string)[];
}

function Twin({ elements }: { elements: Elements }) {
  const { cells, axes, index, steps } = elements;
  const title = (side: 0 | 1, cell: number) => String((index[axes[side]] ?? 0) + cell * steps[side]);
  const columns: Column<Line>[] = [
    {
      title: axes[0] >= 0 ? `axis ${axes[0]}` : "",
      help: "index",
      text: ({ row }) => title(0, row),
      order: ({ row }) => row,
    },
    ...(cells[0] ?? []).map((_, column) => ({
      title: title(1, column),
      help: `index of axis ${axes[1]}`,
      text: (line: Line) => cellText(line.cells[column]!),
      order: (line: Line) => orderOf(line.cells[column]!),
    })),
  ];
  return (
    <Table
      label={`Elements ${indexText(elements)}`}
      columns={columns}
      rows={cells.map((row, number) => ({ row: number, cells: row }))}
      keyOf={({ row }) => row}
    />
  );
}
