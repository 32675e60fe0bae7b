// What a person has picked out, and points at, in every view of the page at once: a replica, and a step.

/** A step of a group of replicas; `of` as `stepsOf` has it. */
export interface PointedStep {
  of: string;
  number: number;
}

export interface Selected {
  /** The replica that is lit up. */
  replica: number | null;
  /** The step that the pointer or the cursor of a chart is at. */
  step: PointedStep | null;
}

/** Whether a replica is lit up: the selected one, or each where none is. */
export function isLit({ replica: selected }: Selected, replica: number): boolean {
  return selected === null || selected === replica;
}

/** The steps of one group, as a chart has them on its axis; made by `stepsOf`. */
export interface Steps {
  /** The step of these replicas that is pointed at somewhere on the page, or null. */
  pointed: number | null;
  /** Points at one of them, or at none. */
  point(step: number | null): void;
}

export class Selection {
  #now: Selected = { replica: null, step: null };
  readonly #listeners = new Set<() => void>();

  get now(): Selected {
    return this.#now;
  }

  /** Selects a replica; the one that is selected already: none. What stands for none, -1, changes nothing. */
  toggle(replica: number): void {
    if (replica >= 0) this.#set({ replica: this.#now.replica === replica ? null : replica });
  }

  /** Points at a step, or at none. */
  point(step: PointedStep | null): void {
    const before = this.#now.step;
    if (before?.of !== step?.of || before?.number !== step?.number) this.#set({ step });
  }

  /** Calls `listener` after every change, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #set(change: Partial<Selected>): void {
    this.#now = { ...this.#now, ...change };
    for (const listener of [...this.#listeners]) listener();
  }
}

/** The one of this page. */
export const pageSelection = new Selection();
