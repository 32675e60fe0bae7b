// Which batch of a dataset belongs to which steps of the strategy, and how long replicas waited for theirs.
import { counted, joined, percent, timeText } from "../format";
import type { DatasetSharding, InputProgress, InputWait } from "../models";
import { isIn, rangeText, type Span, spanText } from "../parts/steps";
import { wording } from "../parts/terms";
import { readingOf, rowsOf } from "./columns";

/** From here on, waiting for input is marked, in percent of the time. */
export const MUCH_WAITING = 20;
/** Shorter waits have no mark, whatever their share of the time. */
const LEAST_WAIT_US = 1000;

/** The step of the strategy that a batch is for, if known. */
export function stepOf({ progress }: DatasetSharding, batch: number): number | undefined {
  const steps = progress?.sampled?.steps;
  return steps?.[steps.length - progress!.given + batch];
}

/** Numbers of the batches for some steps of the strategy; a batch may be for several. */
export function batchesOf(model: DatasetSharding, steps: Span | null): number[] {
  const batches = model.readers[0]?.readings.map(({ step }) => step) ?? [];
  return batches.filter((batch) => {
    const first = stepOf(model, batch);
    if (!steps || first === undefined) return false;
    const next = stepOf(model, batch + 1) ?? first;
    return first <= steps.last && Math.max(first, next - 1) >= steps.first;
  });
}

/** What each replica reads for some steps, in words; for a single batch, which elements. */
export function readText(
  { readers, progress }: DatasetSharding,
  steps: Span,
  batches: readonly number[],
): string {
  if (!batches.length) return `${rangeText(steps)}: none of the batches that are drawn`;
  const span = { first: batches[0]!, last: batches.at(-1)! };
  const several = batches.length > 1;
  const { epoch } = progress!;
  return joined([
    `${rangeText(steps)}: batch${several ? "es" : ""} ${spanText(span)} of epoch ${epoch}`,
    ...readers.map((reader) =>
      joined(
        [
          wording(`replica ${reader.replica}:`, `r${reader.replica}`),
          counted(rowsOf(reader, span), "row"),
          readingOf(reader, span)?.text,
        ],
        " ",
      ),
    ),
    !several && elementsNote(progress),
  ]);
}

/** Says that other epochs may read other elements than the known ones. */
export function elementsNote(progress: DatasetSharding["progress"]): string | false {
  return !!progress?.epoch && "elements as in epoch 0";
}

export interface Wait {
  waited_us: number;
  /** The waited part, 0 to 1, of the time since the replica's previous input. */
  share: number;
  /** The batches that came together then; the wait was for the first of them. */
  batches: Span;
}

/** Column -> the waits for its batches. */
export type Waits = ReadonlyMap<Span, readonly InputWait[]>;

export function waitsOf({ progress }: DatasetSharding, columns: readonly Span[]): Waits {
  const all = progress?.waits ?? [];
  return new Map(columns.map((column) => [column, all.filter(({ first }) => isIn(column, first))]));
}

/** The longest wait of a replica for a batch in a column; null for several replicas. */
export function waitIn(waits: Waits, replica: number, column: Span): Wait | null {
  return waits.get(column)!.reduce<Wait | null>((longest, { first, count, passed_us, waited_us }) => {
    const waited = waited_us[replica];
    if (waited === undefined || waited <= (longest?.waited_us ?? -1)) return longest;
    const share = Math.min(1, waited / (passed_us || 1));
    return { waited_us: waited, share, batches: { first, last: first + count - 1 } };
  }, null);
}

/** Whether it waited so long that this is marked. */
export function isLong(wait: Wait | null): wait is Wait {
  return wait !== null && wait.waited_us >= LEAST_WAIT_US && 100 * wait.share >= MUCH_WAITING;
}

/** How long it waited, in words. */
export function waitText({ waited_us, share, batches }: Wait): string {
  const which = `batch${batches.last > batches.first ? "es" : ""} ${spanText(batches)}`;
  return `waited ${timeText(waited_us)} for ${which}, ${percent(100 * share)} of the time`;
}

/** The part of the time, 0 to 1, in which a replica waited for its input. */
export function waitedShare(progress: InputProgress, replica: number): number {
  const { waited_seconds, elapsed_seconds } = progress;
  return elapsed_seconds > 0 ? Math.min(1, (waited_seconds[replica] ?? 0) / elapsed_seconds) : 0;
}
