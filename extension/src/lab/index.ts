// What JupyterLab loads.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { IConsoleTracker } from "@jupyterlab/console";
import { INotebookTracker } from "@jupyterlab/notebook";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { newNotebooks } from "./clusters/new_notebooks";
import { clusters } from "./clusters/plugin";
import { layouts } from "./layouts/plugin";
import { followMotion } from "./motion";
import { panes } from "./panes/plugin";
import { savedViews } from "./saved/saved_views";
import { ISessions, Sessions } from "./server/sessions";
import { Settings } from "./settings";
import { status } from "./status";
import { followTerms } from "./terms";
import { ISettings, optional } from "./tokens";

const sessions: JupyterFrontEndPlugin<Sessions> = {
  id: "workbench-lab:sessions",
  description: "The notebooks and consoles of the page, for the other plugins.",
  autoStart: true,
  provides: ISessions,
  optional: optional(INotebookTracker, IConsoleTracker),
  activate: (_: JupyterFrontEnd, notebooks: INotebookTracker | null, consoles: IConsoleTracker | null) =>
    new Sessions(notebooks, consoles),
};

const settings: JupyterFrontEndPlugin<Settings> = {
  id: "workbench-lab:settings",
  description: "What a person has set, for the other plugins.",
  autoStart: true,
  provides: ISettings,
  optional: optional(ISettingRegistry),
  activate: (_: JupyterFrontEnd, registry: ISettingRegistry | null) => {
    const settings = new Settings(registry);
    followMotion(settings);
    followTerms(settings);
    return settings;
  },
};

export default [sessions, settings, savedViews, panes, layouts, clusters, newNotebooks, status];
