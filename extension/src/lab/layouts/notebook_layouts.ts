// Layouts that notebooks bring: named or written out in their metadata, and opened once.
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { IStateDB } from "@jupyterlab/statedb";

/** Of the metadata of a notebook: `"workbench": {"layout": "data"}`. */
const KEY = "workbench";
const STATE = "workbench-lab:notebook-layouts";
/** More notebooks than one workspace sees; the oldest are forgotten. */
const MAX_SEEN = 500;

/** What a notebook says of its layout, not yet checked. */
export function layoutIn(notebook: NotebookPanel): unknown {
  const given = notebook.context.model.getMetadata(KEY);
  return typeof given === "object" && given !== null && "layout" in given ? given.layout : undefined;
}

/** Which notebooks have opened their layout in this workspace: after a reload, panes lie as a person has left them. */
export class Seen {
  private constructor(
    private readonly state: IStateDB | null,
    private readonly paths: Set<string>,
  ) {}

  static async of(state: IStateDB | null): Promise<Seen> {
    const kept = await state?.fetch(STATE).catch(() => undefined);
    return new Seen(state, new Set(Array.isArray(kept) ? kept.map(String) : []));
  }

  /** Notes a notebook; whether it is new. */
  add(path: string): boolean {
    if (this.paths.has(path)) return false;
    this.paths.add(path);
    // Where the workspace cannot keep it, this page knows it.
    this.state?.save(STATE, [...this.paths].slice(-MAX_SEEN)).catch(() => undefined);
    return true;
  }
}
