// What is too much to be listed one by one: a dot each, and only those are listed that stand out.
import type { ComponentChildren } from "preact";
import { counted } from "../format";
import { Dots, farOf, rowOf } from "./dots";
import { More } from "./small";

interface Props<One> {
  noun: string;
  all: readonly One[];
  /** Up to this many are all listed. */
  most: number;
  /** What is compared, by its name, and which differences tell nothing. */
  measures: readonly (readonly [name: string, of: (one: One) => number | null, least?: number])[];
  nameOf(one: NoInfer<One>): string;
  /** Whether one stands out by something else. */
  isOdd?(one: NoInfer<One>): boolean;
  /** Lists some. */
  children(listed: readonly One[]): ComponentChildren;
}

export function Crowd<One>({ noun, all, most, measures, nameOf, isOdd, children }: Props<One>) {
  const known = all.filter((one) => measures.every(([, of]) => of(one) !== null));
  const rows =
    known.length > most &&
    measures.map(([name, of, least]) =>
      rowOf(
        name,
        known.map((one) => of(one)!),
        least,
      ),
    );
  const far = rows ? farOf(rows) : [];
  const odd = [...all.filter((one) => isOdd?.(one)), ...far.map((column) => known[column]!)];
  const listed = (rows ? [...new Set(odd)] : all).slice(0, most);
  return (
    <>
      {rows && (
        <Dots
          label={`${measures.map(([name]) => name).join(" and ")} of ${counted(known.length, noun)}`}
          rows={rows}
          nameOf={(column) => nameOf(known[column]!)}
          outliers={far}
          heights={[84, 240]}
        />
      )}
      {listed.length > 0 && children(listed)}
      <More hidden={all.length - listed.length} noun={noun} />
    </>
  );
}
