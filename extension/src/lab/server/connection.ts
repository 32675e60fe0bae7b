// The page's only WebSocket: which clusters there are, and the models that panes have open.
import { merge } from "../../delta";
import type { Collectives, Snapshot } from "../../models";
import type { AnyModel, Channel, ClusterInfo, ServerMessage } from "./messages";

/** The part of a WebSocket that is used; tests pass their own. */
export interface Socket {
  send(text: string): void;
  close(): void;
  onopen: ((event: Event) => void) | null;
  onmessage: ((event: MessageEvent) => void) | null;
  onclose: ((event: CloseEvent) => void) | null;
}

const EMPTY: Snapshot = {
  version: 0,
  counters: {
    records: 0,
    collectives: 0,
    internal: 0,
    failed: 0,
    pending: 0,
    incomplete: 0,
    dropped: 0,
    dropped_events: 0,
    duplicates: 0,
  },
  table: [],
  internal: [],
  groups: [],
  events: [],
};
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;

/** Stays connected, and knows the newest state of everything that is watched. */
export class Connection {
  /** Newest first. */
  clusters: ClusterInfo[] = [];
  connected = false;
  /** When the server has first sent the list of clusters. */
  readonly told: Promise<void>;

  #open: () => Socket;
  #socket: Socket | null = null;
  #models = new Map<string, AnyModel>();
  #watchers = new Map<string, Set<() => void>>();
  #listeners = new Set<() => void>();
  #retryMs = FIRST_RETRY_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #told = "";
  #visible = true;
  #closed = false;

  #tellFirst: () => void = () => undefined;

  constructor(open: () => Socket) {
    this.#open = open;
    this.told = new Promise((resolve) => (this.#tellFirst = resolve));
    this.#connect();
  }

  /** Calls `changed` whenever the list of clusters or the state of the connection has changed. */
  listen(changed: () => void, signal: AbortSignal): void {
    this.#listeners.add(changed);
    signal.addEventListener("abort", () => this.#listeners.delete(changed), { once: true });
  }

  /** Subscribes to a channel of a cluster, and calls `changed` for each newer model. */
  watch(cluster: string, channel: Channel, changed: () => void, signal: AbortSignal): void {
    const key = `${cluster} ${channel}`;
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers.add(changed));
    signal.addEventListener(
      "abort",
      () => {
        watchers.delete(changed);
        if (!watchers.size && this.#watchers.get(key) === watchers) this.#watchers.delete(key);
        this.#tell();
      },
      { once: true },
    );
    this.#tell();
  }

  /** Sets whether the page is visible; while it is hidden, the server sends only clusters. */
  setVisible(visible: boolean): void {
    this.#visible = visible;
    this.#tell();
  }

  /** The id of the next driven cluster after this one; "" if there is none. */
  after(id: string): string {
    const ids = this.clusters.filter((cluster) => cluster.kind === "driver").map((cluster) => cluster.id);
    return ids[(ids.indexOf(id) + 1) % ids.length] ?? "";
  }

  /** The newest model that has come, even of a cluster that has ended. */
  model(cluster: string, channel: Channel): AnyModel | undefined {
    return this.#models.get(`${cluster} ${channel}`);
  }

  /** The newest driven cluster, preferably a live one; of one kernel, if that is given. */
  newest(kernel?: string): ClusterInfo | undefined {
    const drivers = this.clusters.filter(
      (cluster) => cluster.kind === "driver" && (kernel === undefined || cluster.kernel === kernel),
    );
    return drivers.find((cluster) => cluster.summary.status !== "stopped") ?? drivers[0];
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  #connect(): void {
    const socket = this.#open();
    this.#socket = socket;
    socket.onopen = () => {
      this.connected = true;
      this.#retryMs = FIRST_RETRY_MS;
      this.#told = "";
      this.#tell();
      this.#changed();
    };
    socket.onmessage = (event) => this.#take(JSON.parse(String(event.data)) as ServerMessage);
    socket.onclose = () => {
      this.connected = false;
      this.#changed();
      if (this.#closed) return;
      this.#timer = setTimeout(() => this.#connect(), this.#retryMs);
      this.#retryMs = Math.min(LAST_RETRY_MS, 2 * this.#retryMs);
    };
  }

  /** Once per round of the event loop, however many panes open or close in it. */
  #tell(): void {
    queueMicrotask(() => {
      const watched = this.#visible ? [...this.#watchers.keys()] : [];
      const pairs = watched.sort().map((key) => key.split(" "));
      const text = JSON.stringify({ watch: pairs });
      if (!this.connected || this.#closed || text === this.#told) return;
      this.#told = text;
      this.#socket?.send(text);
    });
  }

  #take(message: ServerMessage): void {
    if (message.type === "clusters") {
      this.clusters = message.clusters;
      this.#tellFirst();
      const known = new Set(["", ...this.clusters.map((cluster) => cluster.id)]); // "": channels of no cluster
      for (const key of this.#models.keys()) {
        if (!known.has(key.split(" ")[0] ?? "")) this.#models.delete(key);
      }
      this.#changed();
      return;
    }
    const key = `${message.cluster} ${message.channel}`;
    if (message.type === "model") {
      this.#models.set(key, message.model);
    } else if (message.type === "part") {
      const before = this.#models.get(key);
      if (!before) {
        this.#socket?.close(); // something is missing: start again
        return;
      }
      this.#models.set(key, { ...before, ...message.part } as AnyModel);
    } else {
      const before = (this.#models.get(key) as Collectives | undefined)?.snapshot ?? EMPTY;
      // The server starts again at 0 after it, or this page, was away.
      const snapshot = merge(message.change.since === 0 ? EMPTY : before, message.change);
      if (snapshot === null) {
        this.#socket?.close(); // as above
        return;
      }
      this.#models.set(key, { ...message.frame, snapshot });
    }
    for (const changed of [...(this.#watchers.get(key) ?? [])]) changed();
  }

  #changed(): void {
    for (const changed of [...this.#listeners]) changed();
  }
}
