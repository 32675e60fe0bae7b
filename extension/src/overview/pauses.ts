// When replicas had nothing to do between two steps, and how views of time leave that out.
import { known, medianOf } from "../format";
import type { GroupView, LaneItem } from "../models";
import { linear } from "../scale";

/** In usual steps: a gap this long is not a step, but a pause of the notebook between two. */
const PAUSE = 4;
/** In ns. Users need longer between two cells; a shorter gap is work of a loop between its steps. */
const BY_HAND = 0.25e9;

export interface Pauses {
  /** How long a step takes, in ns. */
  usual: number;
  /** A longer time without work is a pause, in ns. */
  longest: number;
  /** By step: when the notebook sent it; empty if unknown, as in older recordings. */
  sent: ReadonlyMap<number, number>;
  /** By step: when its last collective had ended. */
  ends: ReadonlyMap<number, number>;
  /** By collective: when replicas last got work; before that, no computation is known. */
  since: readonly number[];
  /** When work for the first of all collectives started; Infinity if that is not the first known one. */
  start: number;
}

type Known = Pick<GroupView, "items" | "told">;

/** When its first replica entered. */
export function beginOf(item: LaneItem): number {
  return Math.min(item.ready_ns, ...known(item.enter_ns));
}

function endOf({ ready_ns, last_end_ns }: LaneItem): number {
  return Math.max(ready_ns, last_end_ns);
}

export function pausesOf({ items, told }: Known): Pauses {
  const sent = new Map(told.sent?.steps.map((step, index) => [step, told.sent!.at_ns[index]!]));
  const begins = new Map<number, number>();
  const ends = new Map<number, number>();
  for (const item of items) {
    begins.set(item.step, Math.min(begins.get(item.step) ?? Infinity, beginOf(item)));
    ends.set(item.step, Math.max(ends.get(item.step) ?? 0, endOf(item)));
  }
  // A step that was sent while the previous one was running starts when that has ended.
  const lengths = [...ends].flatMap(([step, end]) =>
    sent.has(step) && (!step || ends.has(step - 1))
      ? end - Math.max(sent.get(step)!, ends.get(step - 1) ?? 0)
      : [],
  );
  const apart = [...begins.values()].map((begin, index, all) => begin - all[index - 1]!).slice(1);
  const inside = [...ends].map(([step, end]) => end - begins.get(step)!);
  const usual = Math.max(1, ...(lengths.length ? [lengths] : [inside, apart]).map(medianOf));
  const longest = Math.max(lengths.length && BY_HAND, PAUSE * usual);
  const first = items[0];
  const start = first?.step || first?.seq ? Infinity : (sent.get(0) ?? Infinity);
  let since = -Infinity;
  let end = Infinity;
  return {
    ...{ usual, longest, sent, ends, start },
    since: items.map((item) => {
      const begin = beginOf(item);
      const at = sent.get(item.step) ?? (begin - end > longest ? begin : since);
      since = Math.max(since, Math.min(begin, at));
      end = Math.max(end === Infinity ? 0 : end, endOf(item));
      return since;
    }),
  };
}

/** The newest steps that fit, back to the last pause: a pause is not a step, and would take their room. */
export function newestSteps(group: GroupView, most: number): { first: number; last: number } {
  const { steps } = group;
  const { longest, sent, ends } = pausesOf(group);
  let first = steps.length - 1;
  while (first > 0 && steps.length - first < most) {
    const { step, seconds } = steps[first - 1]!;
    const idle = sent.get(step + 1)! - ends.get(step)!; // NaN if unknown
    if (seconds === null || (isNaN(idle) ? 1e9 * seconds : idle) > longest) break;
    first -= 1;
  }
  return { first: steps[first]?.step ?? -1, last: steps.at(-1)?.step ?? -1 };
}

/** When lanes start that show the steps from `first` on: as early as possible, but not during a pause before them. */
export function lanesBegin({ items }: Known, pauses: Pauses, first: number): number {
  const { usual, sent, ends, start } = pauses;
  const begun = beginOf(items.find(({ step }) => step >= first)!);
  const over = ends.get(first - 1) ?? start;
  return Math.min(begun, Math.max(over, sent.get(first) ?? begun - usual));
}

export interface Timeline extends Pauses {
  /** A place on the axis, in ns. */
  length: number;
  toAxis(ns: number): number;
  fromAxis(axis: number): number;
  /** Where the axis shortens pauses, and how long they were. */
  breaks: { axis: number; ns: number }[];
}

/** A time axis that starts with the first collective; it may shorten long pauses between steps. */
export function timeline(group: Known, squeezed: boolean): Timeline {
  const pauses = pausesOf(group);
  const { usual, longest, since, start } = pauses;
  const { items } = group;
  const breaks: Timeline["breaks"] = [];
  let axis = 0;
  let end = items.length ? Math.min(start, beginOf(items[0]!)) : 0;
  const domain = [end];
  const range = [0];
  const go = (to: number, by: number) => {
    domain.push((end = to));
    range.push((axis += by));
  };
  items.forEach((item, index) => {
    const pause = since[index]! - end;
    if (squeezed && pause > longest) {
      breaks.push({ axis: axis + usual / 2, ns: pause });
      go(since[index]!, usual);
    }
    if (endOf(item) > end) go(endOf(item), endOf(item) - end);
  });
  const scale = domain.length > 1 ? linear(domain, range) : linear([end, end + 1], [0, 1]);
  return {
    ...pauses,
    length: Math.max(1, axis),
    toAxis: (ns) => scale(ns),
    fromAxis: (position) => scale.invert(position),
    breaks,
  };
}
