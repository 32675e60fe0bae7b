// What the user has selected, or points at, in every view of the page at once: a replica, a step, a range of steps.

/** A step of a group of replicas; `of` is the group's name from `stepsOf`. */
export interface PointedStep {
  of: string;
  number: number;
}

/** Steps of a group, from the first to the last of them. */
export interface StepRange {
  of: string;
  first: number;
  last: number;
  /** The part of their time that is meant, in ns of the driver's clock; all of it by default. */
  time?: readonly [from: number, to: number] | undefined;
}

export interface Selected {
  /** The highlighted replica. */
  replica: number | null;
  /** The step under the pointer or under a chart's cursor. */
  step: PointedStep | null;
  /** The steps that views show; null means the newest. */
  range: StepRange | null;
}

/** How strong what is not lit up is. */
export const FADED = 0.35;

/** Whether a replica is lit up: the selected one, or each where none is. */
export function isLit({ replica: selected }: Selected, replica: number): boolean {
  return selected === null || selected === replica;
}

/** How strongly what belongs to a replica is drawn: what is not lit up fades, in every view alike. */
export function strengthOf(selected: Selected, replica: number): number {
  return isLit(selected, replica) ? 1 : FADED;
}

/** The steps of one group, as a chart has them on its axis; made by `stepsOf`. */
export interface Steps {
  /** The step of these replicas that the page points at, or null. */
  pointed: number | null;
  /** Points at one of them, or at none. */
  point(step: number | null): void;
  /** The steps of these replicas that views show; null means the newest. */
  range: StepRange | null;
  /** Makes views show the steps between two, in any order. */
  brush(one: number, other: number, time?: StepRange["time"]): void;
  /** The only step that they show, if the user has pinned one. */
  pinned: number | null;
  /** Pins a step, and highlights the replica, if there is one. The same step and replica again removes both. */
  pick(step: number | undefined, replica?: number): void;
  /** Makes views show the newest again. */
  follow(): void;
}

export class Selection {
  #now: Selected = { replica: null, step: null, range: null };
  readonly #listeners = new Set<() => void>();

  get now(): Selected {
    return this.#now;
  }

  /** Selects a replica; selecting it again clears the selection. -1, which stands for none, changes nothing. */
  toggle(replica: number): void {
    if (replica >= 0) this.#set({ replica: this.#now.replica === replica ? null : replica });
  }

  /** Points at a step, or at none. */
  point(step: PointedStep | null): void {
    const before = this.#now.step;
    if (before?.of !== step?.of || before?.number !== step?.number) this.#set({ step });
  }

  /** Makes views show a range of steps, or the newest. */
  brush(range: StepRange | null): void {
    this.#set({ range });
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

/** The page's selection. */
export const pageSelection = new Selection();
