// Which cluster a pane or the status bar shows: that of the notebook in front, the newest one, or one by its id.
import type { Connection } from "../server/connection";
import type { ClusterInfo } from "../server/messages";

/** What a pane follows by default: the notebook or console in front. */
export const IN_FRONT = "";
/** What a pane follows on request: the newest cluster, of any notebook or script. Ids are hexadecimal. */
export const NEWEST = "newest";

/** The relevant part of a notebook or a console. */
export interface Front {
  /** The path of the file. */
  name: string;
  /** "" without a kernel. */
  kernel: string;
}

/** Knows which notebook or console is or was last in front. */
export interface Fronts {
  /** Null if none is open. */
  readonly front: Front | null;
  onChange(run: () => void, signal: AbortSignal): void;
}

export class Followed {
  constructor(
    private readonly connection: Connection,
    private readonly fronts: Fronts,
  ) {}

  get front(): Front | null {
    return this.fronts.front;
  }

  /**
   * The cluster with an id, the newest, or that of the notebook in front; the last also for a cluster that is gone.
   *
   * Where no notebook is open, as on a page that watches a script, the newest stands in for it.
   */
  find(wanted: string): ClusterInfo | undefined {
    const { connection, front } = this;
    if (wanted === NEWEST) return connection.newest();
    const named = connection.clusters.find((cluster) => cluster.id === wanted);
    if (named) return named;
    if (!front) return connection.newest();
    return front.kernel ? connection.newest(front.kernel) : undefined;
  }

  /** Calls `changed` whenever the result of `find` may have changed. */
  listen(changed: () => void, signal: AbortSignal): void {
    this.connection.listen(changed, signal);
    this.fronts.onChange(changed, signal);
  }
}
