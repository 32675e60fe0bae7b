// Which batch of a dataset is for which steps of the strategy, and how long replicas waited for theirs.
import { counted, joined } from "../format";
import type { DatasetSharding, InputProgress } from "../models";
import { rangeText, type Span, spanText } from "../parts/steps";
import { readingOf, rowsOf } from "./columns";

/** From here on waiting for input is worth a sign, in percent of the time. */
export const MUCH_WAITING = 20;

/** The step of the strategy that a batch is for, where that is known. */
export function stepOf({ progress }: DatasetSharding, batch: number): number | undefined {
  const steps = progress?.sampled?.steps;
  return steps?.[steps.length - progress!.given + batch];
}

/** Numbers of the batches that are for some steps of the strategy; a batch may be for several. */
export function batchesOf(model: DatasetSharding, steps: Span | null): number[] {
  const batches = model.readers[0]?.readings.map(({ step }) => step) ?? [];
  return batches.filter((batch) => {
    const first = stepOf(model, batch);
    if (!steps || first === undefined) return false;
    const next = stepOf(model, batch + 1) ?? first;
    return first <= steps.last && Math.max(first, next - 1) >= steps.first;
  });
}

/** What each replica reads for some steps, in words; of one batch, which elements. */
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
        [`r${reader.replica}`, counted(rowsOf(reader, span), "row"), readingOf(reader, span)?.text],
        " ",
      ),
    ),
    !several && elementsNote(progress),
  ]);
}

/** That other epochs may read other elements than those that are known. */
export function elementsNote(progress: DatasetSharding["progress"]): string | false {
  return !!progress?.epoch && "elements as in epoch 0";
}

/** The part of the time, 0 to 1, in which a replica waited for its input. */
export function waitedShare(progress: InputProgress, replica: number): number {
  const { waited_seconds, elapsed_seconds } = progress;
  return elapsed_seconds > 0 ? Math.min(1, (waited_seconds[replica] ?? 0) / elapsed_seconds) : 0;
}
