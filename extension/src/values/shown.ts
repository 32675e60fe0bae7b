// What is shown of a value: which replicas have a row, whose elements are visible, and whether figures are drawn.
import { dtypeText, joined } from "../format";
import type { InspectedValue, ReplicaSpread, ReplicaSummary, Summary } from "../models";

/** A replica that holds an array. */
interface Holder {
  replica: number;
  summary: Summary;
}

export interface Shown {
  /** The different types and shapes. */
  arrays: string[];
  /** Whether all copies agree, so that one row stands for them. */
  same: boolean;
  /** Of the replicas in the table; outliers come first. */
  rows: ReplicaSummary[];
  /** The distribution of figures over many replicas that differ. */
  spread: ReplicaSpread | null;
  /** Whose elements and histogram are visible: the selected replica, otherwise the first one that has elements. */
  holder: Holder | undefined;
  /** Its figures, if they have a histogram, and what this belongs to. */
  histogram: Summary | null;
  name: string;
  /** Whether every replica holds one number, and they differ. */
  areNumbers: boolean;
}

/** @param selected the selected replica, or null */
export function shownOf(value: InspectedValue, selected: number | null): Shown {
  const { agreement, replicas } = value;
  const same = Boolean(agreement?.in_sync) && replicas.length > 1;
  const spread = same ? null : value.spread;
  const isFar = ({ replica }: ReplicaSummary) => Number(spread?.outliers.includes(replica));
  const holders = replicas.flatMap((one): Holder[] => {
    const summary = arrayOf(one);
    return summary && !summary.shape.includes(0) ? [{ replica: one.replica, summary }] : [];
  });
  const holder = holders.find(({ replica }) => replica === selected) ?? holders[0];
  return {
    arrays: [...new Set(replicas.map(({ summary }) => arrayText(summary)))],
    same,
    rows: same
      ? replicas.slice(0, 1)
      : spread
        ? [...replicas].sort((one, other) => isFar(other) - isFar(one))
        : [...replicas],
    spread,
    holder,
    histogram: holder?.summary.histogram.length ? holder.summary : null,
    name: joined(
      [value.name || value.kind, !same && replicas.length > 1 && holder && `replica ${holder.replica}`],
      ", ",
    ),
    areNumbers:
      replicas.length > 1 &&
      !same &&
      !spread &&
      replicas.every((one) => arrayOf(one)?.shape.every((size) => size === 1)),
  };
}

/** The type and shape of a component, or what it is if it is not an array. */
export function arrayText(summary: Summary | string): string {
  return typeof summary === "string" ? summary : `${dtypeText(summary.dtype)}[${summary.shape.join(",")}]`;
}

/** The figures of a component; null if it is not an array. */
export function arrayOf({ summary }: ReplicaSummary): Summary | null {
  return typeof summary === "string" ? null : summary;
}
