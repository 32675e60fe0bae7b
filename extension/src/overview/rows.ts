// Which replicas have a row in the overview: all, if they are few; otherwise the worst three and a typical one.
import { joined, sumOf } from "../format";
import type { GroupView, LaneItem } from "../models";
import { wording } from "../parts/terms";

/** With more rows, the worst of them say more. */
const MOST_ROWS = 16;
const WORST = 3;

export interface Row {
  /** -1 for the typical row: the mean of times, the median of lateness. */
  replica: number;
  label: string;
  /** Its index in the times of collectives, or -1. */
  lane: number;
  /** Its index in the lateness, or -1. */
  line: number;
}

export function rowsOf(group: GroupView): Row[] {
  const rows = group.lanes.map(({ replica }, lane) => ({
    replica,
    label: `replica ${replica}`,
    lane,
    line: group.lateness.replicas.indexOf(replica),
  }));
  if (group.n <= MOST_ROWS) return rows;
  const worst = rows.sort((one, other) => lateOf(group, other) - lateOf(group, one)).slice(0, WORST);
  return [...worst, { replica: -1, label: `typical of ${group.n}`, lane: -1, line: -1 }];
}

/** The names of lanes, with the host if there are several; the field's short name if the user prefers that. */
export function laneNames({ lanes }: GroupView): string[] {
  const several = new Set(lanes.map(({ label }) => hostOf(label))).size > 1;
  return lanes.map(({ replica, label }) =>
    wording(joined([`replica ${replica}`, several && hostOf(label)], " on "), label),
  );
}

/** A replica's total lateness, in µs. */
function lateOf(group: GroupView, row: Row): number {
  return sumOf(group.lateness.late_us[row.line] ?? [], (us) => us ?? 0);
}

function hostOf(label: string): string {
  return label.split(" ")[1] ?? "";
}

/** A row's lateness by step; for the typical row, the median of all replicas. */
export function latenessOf(group: GroupView, row: Row): readonly (number | null)[] {
  return row.replica < 0 ? group.lateness.median_us : (group.lateness.late_us[row.line] ?? []);
}

/** In how many of the steps a row was late. */
export function lateSteps(group: GroupView, row: Row): number {
  return group.lateness.late_steps[row.line] ?? 0;
}

/** When a row entered a collective, and when it had its result; null if it took no part. */
export function timesOf(
  item: LaneItem,
  row: Pick<Row, "replica" | "lane">,
): { enter: number; end: number } | null {
  return row.replica < 0 ? { enter: item.mean_enter_ns, end: item.last_end_ns } : laneTimes(item, row.lane);
}

/** The same for a lane. */
export function laneTimes(item: LaneItem, lane: number): { enter: number; end: number } | null {
  const enter = item.enter_ns[lane] ?? null;
  return enter === null ? null : { enter, end: Math.max(enter, item.end_ns[lane] ?? enter) };
}

/** The percentage of its steps that a row waited; null if unknown. */
export function waitedOf(group: GroupView, row: Row): number | null {
  const share = row.replica < 0 ? group.pace.waited_share : group.lateness.waited_shares?.[row.line];
  return share == null ? null : 100 * share;
}
