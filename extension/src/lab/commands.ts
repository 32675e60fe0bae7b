// Commands as a table, for JupyterLab's menus, keys and palette.
import type { JupyterFrontEnd } from "@jupyterlab/application";
import type { ICommandPalette } from "@jupyterlab/apputils";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { LabIcon } from "@jupyterlab/ui-components";

export type Arguments = Record<string, unknown>;

export interface Command {
  /** A text, or one that depends on the arguments. */
  label: string | ((args: Arguments) => string);
  /** What it does, in a sentence; shown as tooltip. */
  caption: string;
  icon: LabIcon;
  execute(args: Arguments): unknown;
  isEnabled?(): boolean;
  isToggled?(): boolean;
  /** The arguments that the palette offers it with, one entry each; one entry without arguments by default. */
  offered?: readonly Arguments[];
}

/** Ids of the commands of panes and clusters; those of layouts are in `layouts/layout_commands.ts`. */
export const COMMANDS = {
  openPane: "workbench:open-pane",
  openRun: "workbench:open-run",
  showPanel: "workbench:show-panel",
  followNotebook: "workbench:follow-notebook",
  followNewest: "workbench:follow-newest",
  nextCluster: "workbench:next-cluster",
  beside: "workbench:show-beside",
  export: "workbench:export-view",
  table: "workbench:show-table",
  pause: "workbench:pause-view",
  newestSteps: "workbench:show-newest-steps",
  nextAlert: "workbench:next-alert",
  previousAlert: "workbench:previous-alert",
  compare: "workbench:compare-runs",
  takeBaseline: "workbench:take-baseline",
  dropBaseline: "workbench:drop-baseline",
  copyCode: "workbench:copy-code",
  pinStep: "workbench:pin-step",
  copyPoint: "workbench:copy-point",
  insertCode: "workbench:insert-connect-code",
  start: "workbench:start-workers",
  scale: "workbench:scale-workers",
  stop: "workbench:stop-cluster",
  help: "workbench:help",
  guide: "workbench:guide",
} as const;

/** The palette's heading for all commands. */
export function categoryOf(trans: TranslationBundle): string {
  return trans.__("Workbench");
}

/** Adds the commands of a table, and offers them in the palette, if there is one. */
export function addCommands(
  app: JupyterFrontEnd,
  palette: ICommandPalette | null,
  category: string,
  table: Readonly<Record<string, Command>>,
): void {
  for (const [command, { offered = [undefined], ...options }] of Object.entries(table)) {
    app.commands.addCommand(command, options);
    for (const args of offered) palette?.addItem({ command, category, ...(args && { args }) });
  }
}
