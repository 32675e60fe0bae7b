// Connects new notebooks for users who have enabled that in the settings: inserts the line as first cell, and runs it.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker, NotebookActions, type NotebookPanel } from "@jupyterlab/notebook";
import { IWorkbench, type Workbench } from "../panes/plugin";
import type { Connection } from "../server/connection";
import type { Settings } from "../settings";
import { ISettings, optional } from "../tokens";
import { codeFor } from "./cell_code";

async function fill(panel: NotebookPanel, settings: Settings, connection: Connection): Promise<void> {
  await Promise.all([settings.ready, panel.context.ready, panel.sessionContext.ready]);
  const info = await panel.sessionContext.session?.kernel?.info;
  await connection.told;
  if (!settings.connectNewNotebooks || info?.language_info.name !== "python" || panel.isDisposed) return;
  const cells = panel.content.model?.sharedModel.cells ?? [];
  if (cells.some((cell) => cell.getSource().trim() !== "")) return; // it has its own code
  panel.content.activeCellIndex = 0;
  panel.content.activeCell?.model.sharedModel.setSource(codeFor(connection));
  await NotebookActions.runAndAdvance(panel.content, panel.sessionContext);
}

export const newNotebooks: JupyterFrontEndPlugin<void> = {
  id: "workbench-lab:new-notebooks",
  description: "Connects new notebooks, if a person has asked for that.",
  autoStart: true,
  requires: [IWorkbench, ISettings],
  optional: optional(INotebookTracker),
  activate: (
    _: JupyterFrontEnd,
    { connection }: Workbench,
    settings: Settings,
    notebooks: INotebookTracker | null,
  ) => {
    notebooks?.widgetAdded.connect((_, panel) => void fill(panel, settings, connection));
  },
};
