// The plugin of layouts: named ones, and those that a page opens by itself.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { IStateDB } from "@jupyterlab/statedb";
import { Token } from "@lumino/coreutils";
import { VIEWS, type ViewName } from "../../views";
import { categoryOf } from "../commands";
import { type Followed, IN_FRONT } from "../panes/followed";
import type { Panes, Place } from "../panes/panes";
import { IWorkbench, type Workbench } from "../panes/plugin";
import { ISessions, type Sessions } from "../server/sessions";
import { SETTINGS, type Settings } from "../settings";
import { ISettings, optional } from "../tokens";
import { Layouts } from "./layout_commands";
import { layoutIn, Seen } from "./notebook_layouts";

export const ILayouts = new Token<Layouts>("workbench-lab:ILayouts");

function activate(
  app: JupyterFrontEnd,
  workbench: Workbench,
  sessions: Sessions,
  settings: Settings,
  palette: ICommandPalette | null,
  state: IStateDB | null,
): Layouts {
  const { api, followed, panes, restored, trans } = workbench;
  const layouts = new Layouts({
    app,
    palette,
    sessions,
    trans,
    category: categoryOf(trans),
    arrange: (area) => panes.arrange(area),
    current: () => panes.layout(),
    publish: (names) => api.keepLayoutNames(names),
  });
  void Promise.all([Seen.of(state), settings.ready, app.restored, restored]).then(([seen]) => {
    layouts.use(settings.stored);
    layouts.openAtStart(panes.tracker.size === 0, somethingInFront(app.shell));
    let isFirst = true;
    onLiveCluster(followed, async () => {
      const wasFirst = isFirst;
      isFirst = false;
      const { notebook } = sessions;
      const wanted = settings.notebookLayouts && notebook && layoutIn(notebook);
      const area = wanted ? layouts.find(wanted) : null;
      const isNew = notebook && area && seen.add(notebook.context.path);
      await somethingInFront(app.shell);
      if (isNew) panes.arrange(area);
      else if (wasFirst && panes.tracker.size === 0) {
        openBeside(panes, settings.openOnFirstCluster);
      }
    });
  });
  return layouts;
}

/** Opens panes beside what the user works in, without taking the focus from there. */
function openBeside(panes: Panes, views: readonly string[]): void {
  let place: Place = { activate: false, mode: panes.side() };
  for (const view of views.filter((name) => Object.hasOwn(VIEWS, name))) {
    const pane = panes.show({ view: view as ViewName, cluster: IN_FRONT, run: "" }, place);
    if (place.mode !== "tab-after") place = { activate: false, mode: "tab-after", ref: pane.id };
  }
}

/** When there is something to open panes beside, which takes a moment on a page that opens a notebook. */
async function somethingInFront(shell: JupyterFrontEnd["shell"]): Promise<void> {
  if (shell.currentWidget) return;
  await new Promise<void>((resolve) => {
    const once = () => {
      shell.currentChanged?.disconnect(once);
      resolve();
    };
    shell.currentChanged?.connect(once);
  });
}

/** Calls `run` whenever another notebook in front drives a live cluster; never for jobs outside of this page. */
function onLiveCluster(followed: Followed, run: () => Promise<void>): void {
  let last = "";
  const look = () => {
    const { front } = followed;
    const cluster = front && followed.find(IN_FRONT);
    if (!cluster || cluster.summary.status === "stopped" || front.kernel === last) return;
    last = front.kernel;
    void run();
  };
  followed.listen(look, new AbortController().signal);
  look();
}

export const layouts: JupyterFrontEndPlugin<Layouts> = {
  id: SETTINGS,
  description: "Named layouts of panes, and what a page opens by itself.",
  autoStart: true,
  provides: ILayouts,
  requires: [IWorkbench, ISessions, ISettings],
  optional: optional(ICommandPalette, IStateDB),
  activate,
};
