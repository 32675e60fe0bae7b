// What JupyterLab loads.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { IConsoleTracker } from "@jupyterlab/console";
import { INotebookTracker } from "@jupyterlab/notebook";
import { clusters } from "./clusters/plugin";
import { layouts } from "./layouts/plugin";
import { panes } from "./panes/plugin";
import { savedViews } from "./saved/saved_views";
import { ISessions, Sessions } from "./server/sessions";
import { status } from "./status";
import { optional } from "./tokens";

const sessions: JupyterFrontEndPlugin<Sessions> = {
  id: "workbench-lab:sessions",
  description: "The notebooks and consoles of the page, for the other plugins.",
  autoStart: true,
  provides: ISessions,
  optional: optional(INotebookTracker, IConsoleTracker),
  activate: (_: JupyterFrontEnd, notebooks: INotebookTracker | null, consoles: IConsoleTracker | null) =>
    new Sessions(notebooks, consoles),
};

export default [sessions, savedViews, panes, layouts, clusters, status];
