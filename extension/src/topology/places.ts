// Where replicas are, host by host, and the news of each in a word.
import type { DeviceNode, HostNode, ReplicaNode, WorkerNode } from "../models";

/** More hosts than these stand together under the names of the first and the last of them. */
const MOST_NAMES = 64;

/** A replica where it is; or a device without one, or a worker without devices. */
export interface Place {
  host: string;
  worker: WorkerNode;
  device: DeviceNode | undefined;
  replica: ReplicaNode | undefined;
}

/** Those of a host, or of neighbours. */
export interface Together {
  name: string;
  places: Place[];
}

export function placesOf({ name: host, workers }: HostNode): Place[] {
  return workers.flatMap((worker): Place[] =>
    (worker.devices.length ? worker.devices : [undefined]).flatMap((device) =>
      (device?.replicas.length ? device.replicas : [undefined]).map((replica) => ({
        host,
        worker,
        device,
        replica,
      })),
    ),
  );
}

export function together(hosts: readonly HostNode[]): Together[] {
  const each = Math.ceil(hosts.length / MOST_NAMES);
  return Array.from({ length: Math.ceil(hosts.length / each) }, (_, index) => {
    const some = hosts.slice(index * each, (index + 1) * each);
    const ends = [some[0]!.name, some.at(-1)!.name];
    return { name: [...new Set(ends)].join(" – "), places: some.flatMap(placesOf) };
  });
}

/** What a place is about, in the order in which that matters: of the first ones each is named. */
export const NEWS = ["lost", "not finite", "late", "stale"];
export const STATES = [...NEWS, "stopped", "idle", "free", "busy"];

export function stateOf({ worker, replica }: Place): string {
  const told = [worker.status, replica?.news, replica?.doing];
  const otherwise = !replica ? "free" : replica.busy ? "busy" : "idle";
  return STATES.find((state) => told.includes(state)) ?? otherwise;
}

export interface Layout {
  /** How many hosts stand beside one another. */
  across: number;
  /** How many replicas of a host do. */
  columns: number;
  /** The sides of what a replica has. */
  width: number;
  height: number;
  /** From one host to the next one, and to the one below. */
  right: number;
  down: number;
}

export const [GAP, NAME] = [14, 18];

/** The layout in which replicas have the most room, in full lines and in shapes not much wider than high, and names have theirs. */
export function layoutOf(
  room: { width: number; height: number },
  hosts: readonly Together[],
  most: number,
): Layout {
  const name = 7 * Math.max(...hosts.map((host) => Math.min(host.name.length, 24)));
  let best!: Layout;
  let largest = -Infinity;
  for (let across = 1; across <= hosts.length; across += 1) {
    const right = (room.width + GAP) / across;
    const down = (room.height + GAP) / Math.ceil(hosts.length / across);
    if (across > 1 && right - GAP < name) break;
    for (let columns = 1; columns <= most; columns += 1) {
      const width = (right - GAP) / columns;
      const lines = Math.ceil(most / columns);
      const height = Math.min(width, Math.max(2, down - GAP - NAME) / lines);
      const size = (Math.min(width, 2 * height) * height) / (columns * lines);
      if (size <= largest) continue;
      largest = size;
      best = { across, columns, width, height, right, down };
    }
  }
  return best;
}
