// Which columns of a table have room. The others are hidden, the least important ones first.
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { sumOf } from "../format";

export interface Foldable {
  title: string;
  /** Columns with the highest number are hidden first if there is no room; those with 0, the default, never. */
  rank?: number;
  /** A text that may be truncated, down to this many pixels, before columns are hidden. */
  least?: number;
}

export interface Folding {
  /** Titles of the hidden columns. */
  folded: ReadonlySet<string>;
  /** Title -> the pixels that remain for a column whose texts are truncated. */
  cut: ReadonlyMap<string, number>;
}

type Measured = Foldable & { width: number };
const NOTHING_FOLDED: Folding = { folded: new Set(), cut: new Map() };

/** What to hide so that columns, each with its desired width, fit into the room. */
export function fold(columns: readonly Measured[], room: number): Folding {
  const least = (column: Measured) => Math.min(column.width, column.least ?? Infinity);
  let rest = room - sumOf(columns, least);
  const folded = new Set<string>();
  const byRank = columns.filter((column) => column.rank).reverse(); // of equal ones, the last goes first
  for (const column of byRank.sort((one, other) => other.rank! - one.rank!)) {
    if (rest >= 0) break;
    folded.add(column.title);
    rest += least(column);
  }
  // Texts that need little more than their minimum get that; the others share the rest equally.
  const long = columns
    .filter((column) => !folded.has(column.title))
    .map((column) => ({ title: column.title, least: least(column), more: column.width - least(column) }))
    .filter(({ more }) => more > 0)
    .sort((one, other) => one.more - other.more);
  const cut = new Map<string, number>();
  long.forEach(({ title, least, more }, index) => {
    const share = Math.max(0, rest / (long.length - index));
    if (more > share) cut.set(title, Math.floor(least + share));
    rest -= Math.min(more, share);
  });
  return { folded, cut };
}

/**
 * What is folded away of the table in `box`, which has `room`: nothing where it is not laid out, or where the `whole` of
 * it is wanted.
 *
 * Widths are measured while nothing is folded away, and only grow from then on: figures that get a digit more or less
 * do not let columns come and go.
 */
export function useFolding(
  box: RefObject<HTMLElement>,
  columns: readonly Foldable[],
  { room, whole }: { room: number; whole: boolean },
): Folding {
  const [folding, setFolding] = useState(NOTHING_FOLDED);
  const measured = useRef({ of: "", widths: new Map<string, number>() });
  useLayoutEffect(() => {
    if (!room || whole) return;
    const of = [room, ...columns.map((column) => column.title)].join("\n");
    if (measured.current.of !== of) {
      measured.current = { of, widths: new Map() };
      if (folding !== NOTHING_FOLDED) {
        setFolding(NOTHING_FOLDED); // and once more with all of them
        return;
      }
    }
    const { widths } = measured.current;
    const shown = columns.filter((column) => !folding.folded.has(column.title));
    const headings = box.current?.querySelectorAll("thead th") ?? [];
    shown.forEach(({ title }, index) => {
      const width = headings[index]?.getBoundingClientRect().width ?? 0;
      widths.set(title, Math.max(width, widths.get(title) ?? 0));
    });
    const next = fold(
      columns.map((column) => ({ ...column, width: widths.get(column.title) ?? 0 })),
      room + 0.5,
    );
    if (textOf(next) !== textOf(folding)) setFolding(next);
  });
  return whole ? NOTHING_FOLDED : folding;
}

function textOf({ folded, cut }: Folding): string {
  return JSON.stringify([[...folded], [...cut]]);
}
