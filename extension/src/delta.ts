// From one snapshot to the next; the twin of `merge` in workbench/telemetry/snapshot.py.
import type { EventItem, GroupView, LaneItem, Snapshot, TableRow } from "./models";

export interface Keyed<T> {
  keys: string[];
  changed: T[];
}

/** What a view with version `since` needs to reach `version`. */
export interface Change {
  since: number;
  version: number;
  counters: Snapshot["counters"];
  table: Keyed<TableRow>;
  internal: Keyed<TableRow>;
  groups: (Omit<GroupView, "items"> & { items: Keyed<LaneItem> })[];
  events: Keyed<EventItem>;
}

/** The newer snapshot, or null if the change starts after this state. */
export function merge(state: Snapshot, change: Change): Snapshot | null {
  if (change.since > state.version) return null;
  if (change.version < state.version) return state; // older than this state
  const before = new Map(state.groups.map((group) => [`${group.run_id}|${group.group}`, group.items]));
  return {
    version: change.version,
    counters: change.counters,
    table: merged(state.table, change.table),
    internal: merged(state.internal, change.internal),
    groups: change.groups.map((group) => ({
      ...group,
      items: merged(before.get(`${group.run_id}|${group.group}`) ?? [], group.items),
    })),
    events: merged(state.events, change.events),
  };
}

function merged<T extends { key: string }>(items: readonly T[], change: Keyed<T>): T[] {
  const known = new Map(items.map((item) => [item.key, item]));
  for (const item of change.changed) known.set(item.key, item);
  return change.keys.flatMap((key) => known.get(key) ?? []);
}
