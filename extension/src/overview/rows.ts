// Which replicas have a row in the overview, and in which colour: all of a few; of many the worst three, and what is typical of all.
import { joined, known, medianOf, sumOf } from "../format";
import type { GroupView, LaneItem } from "../models";
import { wording } from "../parts/terms";

/** As many usual steps long, a step was none: the notebook paused between two. */
export const PAUSE = 4;
/** More rows than this say less than the worst of them. */
const MOST_ROWS = 16;
const WORST = 3;
/** As many replicas can be told apart by colour; of more, hosts are. */
const COLOURS = 8;

export interface Row {
  /** -1 for what is typical of all: the mean of times, the median of lateness. */
  replica: number;
  label: string;
  /** Number of its colour, or -1. */
  colour: number;
  /** Its place in the times of collectives, or -1. */
  lane: number;
  /** Its place in the lateness, or -1. */
  line: number;
}

export function rowsOf(group: GroupView): Row[] {
  const hosts = [...new Set(group.lanes.map(({ label }) => hostOf(label)))];
  const rows = group.lanes.map(({ replica, label }, lane) => ({
    replica,
    label: `replica ${replica}`,
    colour: group.n <= COLOURS ? replica : hosts.indexOf(hostOf(label)) % COLOURS,
    lane,
    line: group.lateness.replicas.indexOf(replica),
  }));
  if (group.n <= MOST_ROWS) return rows;
  const worst = rows
    .sort((one, other) => lateOf(group, other) - lateOf(group, one))
    .slice(0, WORST)
    .map((row, index) => ({ ...row, colour: index }));
  return [...worst, { replica: -1, label: `typical of ${group.n}`, colour: -1, lane: -1, line: -1 }];
}

/** What lanes are called: with their host where there are several; the field's short name where a person prefers that. */
export function laneNames({ lanes }: GroupView): string[] {
  const several = new Set(lanes.map(({ label }) => hostOf(label))).size > 1;
  return lanes.map(({ replica, label }) =>
    wording(joined([`replica ${replica}`, several && hostOf(label)], " on "), label),
  );
}

/** How late a replica came in sum, in µs. */
function lateOf(group: GroupView, row: Row): number {
  return sumOf(group.lateness.late_us[row.line] ?? [], (us) => us ?? 0);
}

function hostOf(label: string): string {
  return label.split(" ")[1] ?? "";
}

/** How late a row came, by step; the median of all replicas where it stands for all. */
export function latenessOf(group: GroupView, row: Row): readonly (number | null)[] {
  return row.replica < 0 ? group.lateness.median_us : (group.lateness.late_us[row.line] ?? []);
}

/** In how many of the steps a row was late. */
export function lateSteps(group: GroupView, row: Row): number {
  return group.lateness.late_steps[row.line] ?? 0;
}

/** When a row entered a collective, and when it had its result; null where it took no part. */
export function timesOf(item: LaneItem, row: Row): { enter: number; end: number } | null {
  return row.replica < 0 ? { enter: item.mean_enter_ns, end: item.last_end_ns } : laneTimes(item, row.lane);
}

/** When its first replica entered. */
export function beginOf(item: LaneItem): number {
  return Math.min(item.ready_ns, ...known(item.enter_ns));
}

/** The same of a lane. */
export function laneTimes(item: LaneItem, lane: number): { enter: number; end: number } | null {
  const enter = item.enter_ns[lane] ?? null;
  return enter === null ? null : { enter, end: Math.max(enter, item.end_ns[lane] ?? enter) };
}

/** How much of its steps a row waited, in percent; null where that cannot be told. */
export function waitedOf(group: GroupView, row: Row): number | null {
  const usual = usualSeconds(group);
  const items = group.items.filter((item) => timesOf(item, row));
  const steps = new Set(items.map(({ step }) => step)).size;
  if (!usual || !steps) return null;
  const waited = sumOf(items, (item) => Math.max(0, item.ready_ns - timesOf(item, row)!.enter));
  return Math.min(100, waited / (1e7 * usual * steps));
}

/** The median of the steps' lengths; 0 where none is known. */
export function usualSeconds({ steps }: GroupView): number {
  return medianOf(steps.flatMap(({ seconds }) => seconds ?? []));
}

/** As many times what a step spends from its first collective to its last one, computing may take. */
const COMPUTING = 20;
/** In ns: whoever runs steps by hand, each in a cell of its own, is not that fast. */
const BY_HAND = 0.25e9;

/**
 * How long a step takes, and how long it may compute between two collectives; in ns. Where each step runs in a cell of
 * its own, it takes as long as from its first collective to its last one.
 */
export function pausesOf(items: readonly LaneItem[]): { usual: number; longest: number } {
  const begins = new Map([...items].reverse().map((item) => [item.step, beginOf(item)]));
  const inside = medianOf([...endsOf(items)].map(([step, end]) => end - begins.get(step)!));
  const ordered = [...begins.values()].reverse();
  const distance = medianOf(ordered.slice(1).map((begin, index) => begin - ordered[index]!));
  const most = Math.max(BY_HAND, COMPUTING * inside);
  // The usual distance is that of pauses, then.
  if (distance > most) return { usual: inside, longest: PAUSE * most };
  const usual = Math.max(1, inside, distance);
  return { usual, longest: PAUSE * usual };
}

/** By step: when its last collective was over. */
export function endsOf(items: readonly LaneItem[]): Map<number, number> {
  const ends = new Map<number, number>();
  for (const { step, last_end_ns } of items) ends.set(step, Math.max(ends.get(step) ?? 0, last_end_ns));
  return ends;
}

/** The newest steps that fit, back to the last pause: a pause is no step, and would leave no room for them. */
export function newestSteps(group: GroupView, most: number): { first: number; last: number } {
  const { steps } = group;
  const { longest } = pausesOf(group.items);
  let first = steps.length - 1;
  while (first > 0 && steps.length - first < most) {
    const before = steps[first - 1]!.seconds;
    if (before === null || 1e9 * before > longest) break;
    first -= 1;
  }
  return { first: steps[first]?.step ?? -1, last: steps.at(-1)?.step ?? -1 };
}
