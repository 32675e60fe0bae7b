// What a person has picked out: a replica, lit up in every view of the page.

export interface Selected {
  replica: number | null;
}

export class Selection {
  #now: Selected = { replica: null };
  readonly #listeners = new Set<() => void>();

  get now(): Selected {
    return this.#now;
  }

  /** Selects a replica; the one that is selected already: none. */
  toggle(replica: number): void {
    this.#now = { replica: this.#now.replica === replica ? null : replica };
    for (const listener of [...this.#listeners]) listener();
  }

  /** Calls `listener` after every change, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** The one of this page. */
export const pageSelection = new Selection();
