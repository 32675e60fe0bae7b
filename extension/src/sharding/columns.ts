// The columns of a dataset's matrix: steps, summed up in a narrow chart, and how many rows are read in each.
import { count, sumOf } from "../format";
import type { DatasetSharding, Reader, Reading } from "../models";
import type { Span } from "../parts/steps";

const LEAST = 24;

/** The steps for which it is known what each replica reads. */
export function windowOf({ readers }: DatasetSharding): Span {
  const readings = readers[0]?.readings ?? [];
  const first = readings[0]?.step ?? 0;
  return { first, last: first + readings.length - 1 };
}

/**
 * Columns of as few steps each as there is room for their numbers; the parts before and after the window have one
 * column each.
 */
export function columnsOf(model: DatasetSharding, room: number, usual: number): Span[] {
  const { first, last } = windowOf(model);
  const isSummed = first === 0 || model.readers[0]?.rows_before !== undefined; // not in older recordings
  const columns = (each: number) => {
    const found: Span[] = [];
    for (let step = first; step <= last; step += each)
      found.push({ first: step, last: Math.min(last, step + each - 1) });
    if (isSummed && first > 0) found.unshift({ first: 0, last: first - 1 });
    if (isSummed && last + 1 < model.steps) found.push({ first: last + 1, last: model.steps - 1 });
    return found;
  };
  let each = 1;
  const width = () => Math.max(LEAST, 8 + 6.2 * count(each * usual).length);
  while (each <= last - first && columns(each).length * width() > room) each += 1;
  return columns(each);
}

/** Rows that a reader reads in a column. */
export function rowsOf({ rows, rows_before = 0, readings }: Reader, { first, last }: Span): number {
  const begin = readings[0]!.step;
  const sum = (some: readonly Reading[]) => sumOf(some, (reading) => reading.rows);
  if (first < begin) return rows_before;
  if (last > readings.at(-1)!.step) return rows - rows_before - sum(readings);
  return sum(readings.slice(first - begin, last - begin + 1));
}

/** Rows of its fullest step. */
export function usualOf(reader: Reader | undefined): number {
  return Math.max(1, ...(reader?.readings.map(({ rows }) => rows) ?? []));
}

/** The first column of those at the end in which all replicas together read fewer rows than in a full step. */
export function remainderOf(columns: readonly Span[], all: Reader | undefined): number {
  const usual = usualOf(all);
  const full = columns.filter((column) => rowsOf(all!, column) >= (column.last - column.first + 1) * usual);
  return full.length ? columns.indexOf(full.at(-1)!) + 1 : columns.length;
}

/** What it reads in a column of one step. */
export function readingOf({ readings }: Reader, { first, last }: Span): Reading | undefined {
  return first === last ? readings[first - readings[0]!.step] : undefined;
}
