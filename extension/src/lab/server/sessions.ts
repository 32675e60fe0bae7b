// The notebooks and consoles of the page, with their kernels.
import type { ConsolePanel, IConsoleTracker } from "@jupyterlab/console";
import type { INotebookTracker, NotebookPanel } from "@jupyterlab/notebook";
import type { ISessionContext } from "@jupyterlab/apputils";
import type { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { Token } from "@lumino/coreutils";
import type { Widget } from "@lumino/widgets";
import type { Front } from "../panes/followed";

export const ISessions = new Token<Sessions>("workbench-lab:ISessions");

/** A message that a kernel publishes. */
export interface Published {
  header: { msg_type: string };
  content: Record<string, unknown>;
}

interface Session {
  name(): string;
  panel: Widget;
  /** Null for a console. */
  notebook: NotebookPanel | null;
  rendermime: IRenderMimeRegistry;
  context: ISessionContext;
}

export class Sessions {
  #all: Session[] = [];
  #front: Session | null = null;
  #onChange = new Set<() => void>();
  #onSave = new Set<(panel: Widget) => void>();
  #onPublished = new Set<(message: Published) => void>();

  constructor(notebooks: INotebookTracker | null, consoles: IConsoleTracker | null) {
    const addNotebook = (panel: NotebookPanel) => {
      this.#add({
        name: () => panel.title.label,
        panel,
        notebook: panel,
        rendermime: panel.content.rendermime,
        context: panel.sessionContext,
      });
      panel.context.saveState.connect((_, state) => {
        if (state === "started") for (const run of [...this.#onSave]) run(panel);
      });
    };
    const addConsole = (panel: ConsolePanel) =>
      this.#add({
        name: () => panel.title.label,
        panel,
        notebook: null,
        rendermime: panel.console.rendermime,
        context: panel.sessionContext,
      });
    notebooks?.forEach(addNotebook);
    notebooks?.widgetAdded.connect((_, panel) => addNotebook(panel));
    consoles?.forEach(addConsole);
    consoles?.widgetAdded.connect((_, panel) => addConsole(panel));
    for (const tracker of [consoles, notebooks]) {
      const bring = () => this.#bring(tracker?.currentWidget ?? null);
      bring();
      tracker?.currentChanged.connect(bring);
      tracker?.widgetAdded.connect(bring); // it may be reported as current before it is reported as added
    }
  }

  /** The notebook or console that the user works in, or did last; null if none is open. */
  get front(): Front | null {
    const session = this.#front;
    if (!session) return null;
    return { name: session.name(), kernel: session.context.session?.kernel?.id ?? "" };
  }

  /** The notebook in front; null if that is a console, or nothing is open. */
  get notebook(): NotebookPanel | null {
    return this.#front?.notebook ?? null;
  }

  /**
   * What can show the widget with this id live, because its kernel has it; preferably in the panel that contains
   * `node`.
   */
  showing(widget: string, node: Node): IRenderMimeRegistry | undefined {
    const able = this.#all.filter(({ context }) => context.session?.kernel?.hasComm(widget));
    return (able.find(({ panel }) => panel.node.contains(node)) ?? able[0])?.rendermime;
  }

  /** Calls `run` whenever a kernel may have new widgets, or another session is in front. */
  onChange(run: () => void, signal: AbortSignal): void {
    subscribe(this.#onChange, run, signal);
  }

  /** Calls `run` with a notebook before it is saved. */
  onSave(run: (panel: Widget) => void, signal: AbortSignal): void {
    subscribe(this.#onSave, run, signal);
  }

  /** Calls `run` with each message that a kernel publishes now; never with the content of a file. */
  onPublished(run: (message: Published) => void, signal: AbortSignal): void {
    subscribe(this.#onPublished, run, signal);
  }

  #bring(panel: Widget | null): void {
    const session = this.#all.find((one) => one.panel === panel);
    if (!session) return; // null when a tracker's last one closes; the other tracker's may be in front
    this.#front = session;
    this.#changed();
  }

  #changed(): void {
    for (const run of [...this.#onChange]) run();
  }

  #add(session: Session): void {
    this.#all.push(session);
    const changed = () => this.#changed();
    session.context.statusChanged.connect(changed);
    session.context.kernelChanged.connect(changed);
    session.context.iopubMessage.connect((_, message) => {
      for (const run of [...this.#onPublished]) run(message as Published);
    });
    session.panel.disposed.connect(() => {
      this.#all = this.#all.filter((one) => one !== session);
      if (this.#front === session) this.#front = this.#all.at(-1) ?? null;
      this.#changed();
    });
    changed();
  }
}

function subscribe<T>(all: Set<T>, run: T, signal: AbortSignal): void {
  all.add(run);
  signal.addEventListener("abort", () => all.delete(run), { once: true });
}
