// Layouts that notebooks contain: named or spelled out in their metadata, and opened once.
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { IStateDB } from "@jupyterlab/statedb";

/** In a notebook's metadata: `"workbench": {"layout": "data"}`. */
const KEY = "workbench";
const STATE = "workbench-lab:notebook-layouts";
/** More notebooks than one workspace sees; the oldest are forgotten. */
const MAX_SEEN = 500;

/** What a notebook says about its layout, not checked yet. */
export function layoutIn(notebook: NotebookPanel): unknown {
  const given = notebook.context.model.getMetadata(KEY);
  return typeof given === "object" && given !== null && "layout" in given ? given.layout : undefined;
}

/** Which notebooks have opened their layout in this workspace: after a reload, panes stay as the user left them. */
export class Seen {
  private constructor(
    private readonly state: IStateDB | null,
    private readonly paths: Set<string>,
  ) {}

  static async of(state: IStateDB | null): Promise<Seen> {
    const kept = await state?.fetch(STATE).catch(() => undefined);
    return new Seen(state, new Set(Array.isArray(kept) ? kept.map(String) : []));
  }

  /** Records a notebook; returns whether it is new. */
  add(path: string): boolean {
    if (this.paths.has(path)) return false;
    this.paths.add(path);
    // If the workspace cannot keep it, this page remembers it.
    this.state?.save(STATE, [...this.paths].slice(-MAX_SEEN)).catch(() => undefined);
    return true;
  }
}
