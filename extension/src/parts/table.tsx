// A table that keeps only visible rows in the page, and whose cells can all be reached by keys. Columns without room
// are hidden: a line below the table shows them for the current row, and a button brings them back.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { counted } from "../format";
import { clamped } from "../scale";
import type { Context } from "../view";
import { type Foldable, useFolding } from "./folding";
import { Button, hasFocus, Note, take } from "./small";
import { worded, type Worded } from "./terms";
import { useRoom } from "./width";

export interface Column<Row> extends Foldable, Worded {
  /** What is in the cell, as text. */
  text(row: Row): string;
  /** Shown instead of the bare text, such as with a bar beside it. */
  show?(row: Row): ComponentChildren;
  /** The sort key of the column; by default its text. */
  order?(row: Row): number | string;
  /** A name, not a figure. */
  left?: boolean;
}

/** A condition in front of a column, joined by `&&`, leaves it out. */
export type Columns<Row> = readonly (Column<Row> | 0 | false | null | undefined)[];

/** A column of numbers, sorted by them. null, which `as` formats in its own way, is the least. */
export function numeric<Row, Value extends number | null>(
  title: string,
  of: (row: Row) => Value,
  as: (value: Value) => string = String,
  more: Partial<Column<Row>> = {},
): Column<Row> {
  return { title, text: (row) => as(of(row)), order: (row) => of(row) ?? -Infinity, ...more };
}

/** A column of texts. */
export function named<Row>(
  title: string,
  text: (row: Row) => string,
  more: Partial<Column<Row>> = {},
): Column<Row> {
  return { title, left: true, text, ...more };
}

/** For a row that stands for a replica. */
export const replicaOf = ({ replica }: { replica: number }) => replica;

/** For rows that stand for replicas: marks the selected one, and a click selects its own; -1 stands for none. */
export function selecting<Row>({ selected, select }: Context, of: (row: Row) => number) {
  return {
    isSelected: (row: Row) => of(row) >= 0 && of(row) === selected.replica,
    onPick: (row: Row) => select(of(row)),
  };
}

interface Props<Row> {
  label: string;
  columns: Columns<Row>;
  rows: readonly Row[];
  keyOf(row: NoInfer<Row>): string | number;
  /** Shown without rows. */
  empty?: string | undefined;
  isSelected?(row: NoInfer<Row>): boolean;
  /** The rows of the step that is pointed at. */
  isPointed?(row: Row): boolean;
  /** The pointer or the focus is on a row, or no longer on any. */
  onPoint?(row: Row | null): void;
  /** On click or Enter. */
  onPick?(row: NoInfer<Row>): void;
  /** Keeps the last row in view until the user scrolls away from it. */
  follow?: boolean;
}

/** What keys move to. */
interface Cursor {
  key: string | number | null;
  row: number;
  column: number;
}

/** Its greatest height by itself, as in the style sheet. */
const HEIGHT = 340;
const ROW_HEIGHT = 24;
/** How many rows are in the page besides the visible ones: 10 above and as many below. */
const BESIDE = 25;
let tables = 0;

export function Table<Row>(props: Props<Row>) {
  const { label, rows, keyOf, isSelected, isPointed, onPoint, onPick } = props;
  const [sorting, setSorting] = useState<{ plain: string; down: boolean } | null>(null);
  // The row of the keyboard cursor, by its key and its last place; -1: the headings.
  const [cursor, setCursor] = useState<Cursor>({ key: null, row: -1, column: 0 });
  const [hovered, setHovered] = useState<string | number | null>(null);
  const [whole, setWhole] = useState(false);
  const [first, setFirst] = useState(0);
  const scroll = useRef<HTMLDivElement>(null);
  const grid = useRef<HTMLTableElement>(null);
  const wantsFocus = useRef(false);
  const atEnd = useRef(true);
  const id = useRef("");
  id.current ||= `wb-folded-${(tables += 1)}`;

  const every = props.columns.flatMap((column) => (column ? [worded(column)] : []));
  const sorter = every.find(({ plain }) => plain === sorting?.plain);
  // The sorted column stays.
  const foldable = sorter
    ? every.map((column) => (column === sorter ? { ...column, rank: 0 } : column))
    : every;
  const room = useRoom(scroll, rows.length > 0);
  const { folded, cut } = useFolding(scroll, foldable, { room: room.width, whole });
  const columns = every.filter((column) => !folded.has(column.title));
  const shown = sorted(rows, sorter, sorting?.down ?? false);
  const most = Math.ceil((room.height || HEIGHT) / ROW_HEIGHT) + BESIDE;
  const virtual = shown.length > most + 10;
  const from = virtual ? clamped(first, 0, shown.length - most) : 0;
  const visible = virtual ? shown.slice(from, from + most) : shown;
  // Rows come, go and move: the cursor stays with its row; if that has gone, with its place. If the row is scrolled
  // away, keys continue from the closest one in the page.
  const placeOf = (key: string | number | null) =>
    key === null ? -1 : shown.findIndex((row) => keyOf(row) === key);
  const own = placeOf(cursor.key);
  const place = own < 0 ? cursor.row : own;
  const at = {
    row: place < 0 ? -1 : clamped(place, from, from + visible.length - 1),
    column: Math.min(cursor.column, columns.length - 1),
  };

  useLayoutEffect(() => {
    const box = scroll.current;
    if (props.follow && box && atEnd.current && sorting === null) box.scrollTop = box.scrollHeight;
  }, [rows]);
  const focused = hasFocus(grid.current);
  useLayoutEffect(() => {
    const moved = wantsFocus.current;
    if (!moved && (!focused || hasFocus(grid.current))) return; // or the focused row went away
    const cell = grid.current?.querySelector<HTMLElement>("[tabindex='0']");
    if (!cell) return;
    wantsFocus.current = false;
    cell.focus({ preventScroll: true });
    if (moved) cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  });

  const cursorAt = (row: number, column: number): Cursor => ({
    ...{ row, column },
    key: row < 0 ? null : keyOf(shown[row]!),
  });
  const move = (row: number, column: number) => {
    const next = cursorAt(clamped(row, -1, shown.length - 1), clamped(column, 0, columns.length - 1));
    wantsFocus.current = true;
    if (virtual && next.row >= 0 && (next.row < from + 1 || next.row >= from + most - 2)) {
      const start = Math.max(0, next.row - Math.floor(most / 2));
      if (scroll.current) scroll.current.scrollTop = start * ROW_HEIGHT;
      setFirst(start);
    }
    setCursor(next);
  };
  const sortBy = (column: number) => {
    const { plain } = columns[column]!;
    if (sorting?.plain !== plain) setSorting({ plain, down: false });
    else setSorting(sorting.down ? null : { plain, down: true });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { row, column } = at;
    const end = shown.length - 1;
    const moves: Record<string, [row: number, column: number]> = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + 10, column],
      PageUp: [Math.max(0, row - 10), column],
      Home: [event.ctrlKey ? -1 : row, 0],
      End: [event.ctrlKey ? end : row, columns.length - 1],
    };
    const next = moves[event.key];
    const picked = shown[row];
    const link = (event.target as Element).querySelector("button");
    if (next) move(...next);
    else if (event.key !== "Enter" && event.key !== " ") return;
    else if (row < 0) sortBy(column);
    else if (link) link.click();
    else if (picked !== undefined) onPick?.(picked);
    take(event);
  };
  const onScroll = (event: Event) => {
    const box = event.currentTarget as HTMLElement;
    atEnd.current = box.scrollTop + box.clientHeight >= box.scrollHeight - ROW_HEIGHT;
    const top = Math.max(0, Math.floor(box.scrollTop / ROW_HEIGHT) - 10);
    if (virtual && Math.abs(top - from) > 5) setFirst(top);
  };

  if (!rows.length) return <Note>{props.empty ?? "nothing yet"}</Note>;
  const widest = ({ title }: Foldable) => (cut.has(title) ? { maxWidth: `${cut.get(title)}px` } : undefined);
  const colindex = (column: (typeof every)[number]) => (folded.size ? every.indexOf(column) + 1 : undefined);
  const hidden = every.filter(({ title }) => folded.has(title) || cut.has(title));
  const read = shown[placeOf(hovered)] ?? shown[at.row];
  return (
    <>
      <div
        class="wb-scroll"
        ref={scroll}
        onScroll={onScroll}
        onPointerLeave={() => {
          setHovered(null);
          onPoint?.(null);
        }}
      >
        <table
          class="wb-grid"
          role="grid"
          aria-label={label}
          aria-rowcount={shown.length + 1}
          aria-colcount={folded.size ? every.length : undefined}
          ref={grid}
          onKeyDown={onKeyDown}
          onBlur={() => onPoint?.(null)}
        >
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((column, index) => (
                <th
                  key={column.title}
                  scope="col"
                  class={column.left ? "wb-left" : ""}
                  title={column.help}
                  style={widest(column)}
                  tabIndex={at.row === -1 && at.column === index ? 0 : -1}
                  aria-colindex={colindex(column)}
                  aria-sort={column === sorter ? (sorting?.down ? "descending" : "ascending") : undefined}
                  onFocus={() => setCursor(cursorAt(-1, index))}
                  onClick={() => sortBy(index)}
                >
                  {column.title}
                  {column === sorter ? (sorting?.down ? " ▼" : " ▲") : ""}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {from > 0 && <Gap rows={from} columns={columns.length} />}
            {visible.map((row, index) => (
              <tr
                key={keyOf(row)}
                aria-rowindex={from + index + 2}
                aria-selected={isSelected?.(row) ? "true" : undefined}
                aria-current={isPointed?.(row) ? "step" : undefined}
                onClick={() => onPick?.(row)}
                onPointerEnter={() => {
                  if (hidden.length) setHovered(keyOf(row));
                  onPoint?.(row);
                }}
              >
                {columns.map((column, place) => (
                  <td
                    key={column.title}
                    class={column.left ? "wb-left" : ""}
                    tabIndex={at.row === from + index && at.column === place ? 0 : -1}
                    style={widest(column)}
                    title={column.left ? column.text(row) : undefined}
                    aria-colindex={colindex(column)}
                    // Only in the first cell; otherwise it would be announced with every step along the row.
                    aria-describedby={
                      hidden.length && !place && at.row === from + index ? id.current : undefined
                    }
                    onFocus={() => {
                      setCursor(cursorAt(from + index, place));
                      onPoint?.(row);
                    }}
                  >
                    {column.show ? column.show(row) : column.text(row)}
                  </td>
                ))}
              </tr>
            ))}
            {virtual && <Gap rows={shown.length - from - visible.length} columns={columns.length} />}
          </tbody>
        </table>
      </div>
      {(hidden.length > 0 || whole) && (
        <div class="wb-folded">
          {(folded.size > 0 || whole) && (
            <Button aria-expanded={whole} onClick={() => setWhole(!whole)}>
              {whole ? "Fewer columns" : counted(folded.size, "more column")}
            </Button>
          )}
          <span
            id={id.current}
            class="wb-readout"
            data-hint={hidden.length ? `pointer: ${hidden.map((column) => column.title).join(", ")}` : ""}
          >
            {read === undefined
              ? ""
              : hidden.map((column) => `${column.title} ${column.text(read)}`).join(" · ")}
          </span>
        </div>
      )}
    </>
  );
}

/** Stands for rows that are not in the page. */
function Gap({ rows, columns }: { rows: number; columns: number }) {
  return (
    <tr class="wb-gap" aria-hidden>
      <td colSpan={columns} style={{ height: `${rows * ROW_HEIGHT}px` }} />
    </tr>
  );
}

function sorted<Row>(rows: readonly Row[], column: Column<Row> | undefined, down: boolean): readonly Row[] {
  if (!column) return rows;
  const order = column.order ?? column.text;
  const sign = down ? -1 : 1;
  return [...rows].sort((one, other) => {
    const a = order(one);
    const b = order(other);
    return sign * (a < b ? -1 : a > b ? 1 : 0);
  });
}
