// What a view is: a function of a model, and what it may use besides.
import type { ComponentChildren } from "preact";
import type { Models } from "./models";
import type { PointedStep, Selected, StepRange } from "./selection";

export type ViewName = keyof Models;

export interface Context {
  /** The selected replica, the step that is pointed at, and the steps shown. */
  selected: Selected;
  /** Selects a replica in all views, or clears the selection if it was selected; -1 is no replica. */
  select(replica: number): void;
  /** Marks a step in all views of its run, or none; see `stepsOf`. */
  point(step: PointedStep | null): void;
  /** Makes all views of a run show a range of its steps, or the newest; see `stepsOf`. */
  brush(range: StepRange | null): void;
  /** Sends a request to the owner of the model, such as for another what-if; undefined if nobody can answer. */
  ask: ((request: Request) => void) | undefined;
}

/** What a view may request. */
export type Request =
  | {
      kind: "elements";
      value: number;
      replica: number;
      difference: boolean;
      axes: [number, number];
      index: number[];
      extent: [number | null, number | null];
    }
  | { kind: "again" }
  | { kind: "step"; shown: number }
  | { kind: "what_if"; batch_size: number; hosts: number; replicas_per_host: number; policy: string }
  | { kind: "list"; step: number; replica: number }
  | { kind: "open_run"; path: string }
  | { kind: "compare_runs"; first: string; second: string }
  | { kind: "show_steps"; first: number; last: number };

/** The event with which a view asks its surroundings to open another one; whoever can do that cancels it. */
export const OPEN = "workbench:open";

/** The event with which a view asks its surroundings to put code into a notebook; whoever can do that cancels it. */
export const INSERT = "workbench:insert";

export interface View<M> {
  /** For headings, tabs and panes. */
  title: string;
  /** The view; called again with every model that is drawn. */
  draw(props: { model: M; context: Context }): ComponentChildren;
}
