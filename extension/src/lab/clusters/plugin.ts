// The plugin of clusters: the left panel, and the commands that start, scale, stop and connect to them.
import { ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from "@jupyterlab/application";
import { Dialog, ICommandPalette, InputDialog, showDialog, showErrorMessage } from "@jupyterlab/apputils";
import { INotebookTracker } from "@jupyterlab/notebook";
import { IStateDB } from "@jupyterlab/statedb";
import { textOf } from "../arguments";
import { addCommands, type Arguments, categoryOf, type Command, COMMANDS } from "../commands";
import { commandIcon, ICON, iconOf } from "../icons";
import { LAYOUT_COMMANDS, type Layouts } from "../layouts/layout_commands";
import { ILayouts } from "../layouts/plugin";
import { IN_FRONT } from "../panes/followed";
import { IWorkbench, type Workbench } from "../panes/plugin";
import type { ClusterInfo } from "../server/messages";
import type { Settings } from "../settings";
import { ISettings, optional } from "../tokens";
import { connectCode } from "./cell_code";
import { insertCode } from "./connect_code";
import { Panel } from "./panel";
import { endsWith, losesBy } from "./stopping";
import { AS_USUAL, isResizable, MAX_REPLICAS } from "./worker_options";

function activate(
  app: JupyterFrontEnd,
  workbench: Workbench,
  layouts: Layouts,
  settings: Settings,
  palette: ICommandPalette | null,
  restorer: ILayoutRestorer | null,
  notebooks: INotebookTracker | null,
  state: IStateDB | null,
): void {
  const { api, connection, trans } = workbench;
  const run = (command: string, args: Arguments = {}) => void app.commands.execute(command, args);
  const panel = new Panel(
    connection,
    layouts,
    {
      start: (options) => api.start(options),
      scale: (cluster, replicas, maximum) => scale(cluster, replicas, maximum, workbench),
      stop: (cluster) => stop(cluster, workbench),
      insert: (cluster) => run(COMMANDS.insertCode, { cluster: cluster.id }),
      openPane: (view, cluster) => run(COMMANDS.openPane, { view, ...(cluster && { cluster }) }),
      openRun: workbench.openRun,
      openLayout: (name) => run(LAYOUT_COMMANDS.open, { name }),
      saveLayout: () => run(LAYOUT_COMMANDS.save),
    },
    trans,
    settings,
    state,
  );
  const icon = iconOf("icon", ICON);
  panel.title.icon = icon;
  app.shell.add(panel, "left", { rank: 400 });
  restorer?.add(panel, "workbench-panel");
  addCommands(app, palette, categoryOf(trans), {
    [COMMANDS.showPanel]: {
      label: trans.__("Show the panel of clusters"),
      caption: trans.__("Shows clusters, strategies, panes, layouts and recorded runs at the left."),
      icon,
      execute: () => app.shell.activateById(panel.id),
    },
    ...clusterCommands(app, workbench, notebooks),
  });
}

function clusterCommands(
  app: JupyterFrontEnd,
  workbench: Workbench,
  notebooks: INotebookTracker | null,
): Record<string, Command> {
  const { api, connection, followed, trans } = workbench;
  const failed = (error: unknown) =>
    showErrorMessage(categoryOf(trans), error instanceof Error ? error.message : String(error));
  /** The cluster that a command applies to: named, under the context menu, of the notebook in front, or the newest. */
  const subject = (args: Arguments): ClusterInfo | undefined => {
    const node = app.contextMenuHitTest((element) => element.dataset["id"] !== undefined);
    const id = textOf(args["cluster"]) || (node?.dataset["id"] ?? "");
    if (id) return connection.clusters.find((cluster) => cluster.id === id);
    return followed.find(IN_FRONT) ?? connection.newest();
  };
  const askReplicas = async (title: string, value: number): Promise<number | null> => {
    const answer = await InputDialog.getNumber({ title, label: trans.__("Replicas"), value });
    if (!answer.button.accept) return null;
    const replicas = Number(answer.value);
    if (Number.isInteger(replicas) && replicas >= 1 && replicas <= MAX_REPLICAS) return replicas;
    await failed(trans.__("The number of replicas is a whole number from 1 to %1.", MAX_REPLICAS));
    return null;
  };
  return {
    [COMMANDS.insertCode]: {
      label: trans.__("Insert the code that connects to a cluster"),
      caption: trans.__("Puts it into a new cell below the active one of the notebook in front."),
      icon: commandIcon("insert"),
      isEnabled: () => notebooks !== null,
      execute: (args) => {
        const notebook = notebooks?.currentWidget;
        const cluster = subject(args);
        if (!notebook) return failed(trans.__("Open a notebook first: the code goes below its active cell."));
        if (args["code"]) insertCode(notebook, textOf(args["code"]));
        else if (cluster) insertCode(notebook, connectCode(cluster));
        return undefined;
      },
    },
    [COMMANDS.start]: {
      label: trans.__("Start workers …"),
      caption: trans.__("Starts processes on the server's machine to which notebooks can connect."),
      icon: commandIcon("start"),
      execute: async () => {
        const replicas = await askReplicas(trans.__("Start workers"), 2);
        if (replicas !== null) await api.start({ ...AS_USUAL, replicas }).catch(failed);
      },
    },
    [COMMANDS.scale]: {
      label: trans.__("Scale workers …"),
      caption: trans.__(
        "Changes how many workers wait for a notebook; asks first where one would lose replicas.",
      ),
      icon: commandIcon("scale"),
      isEnabled: () => connection.clusters.some(isScalable),
      execute: async (args) => {
        const named = subject(args);
        const cluster = named && isScalable(named) ? named : connection.clusters.find(isScalable);
        if (!cluster) return;
        const { minimum, maximum } = cluster.summary.pool!;
        const replicas = await askReplicas(trans.__("Scale %1", cluster.name), minimum);
        if (replicas === null) return;
        await scale(cluster, replicas, maximum > replicas ? maximum : 0, workbench).catch(failed);
      },
    },
    [COMMANDS.stop]: {
      label: trans.__("Stop the cluster"),
      caption: trans.__("Ends the workers, after a question where that loses something."),
      icon: commandIcon("stop"),
      isEnabled: () => connection.clusters.length > 0,
      execute: async (args) => {
        const cluster = subject(args);
        if (cluster) await stop(cluster, workbench).catch(failed);
      },
    },
  };
}

function isScalable({ summary }: ClusterInfo): boolean {
  return summary.status !== "stopped" && summary.pool !== null && isResizable(summary.pool);
}

/** Stops a cluster; asks first if that loses something. */
async function stop(cluster: ClusterInfo, { api, connection, trans }: Workbench): Promise<void> {
  const ends = endsWith(cluster, connection.clusters, trans);
  const isMeant = await confirmed(trans.__("Stop %1?", cluster.name), ends, trans.__("Stop"));
  if (isMeant) await api.stop(cluster.id);
}

/** Changes the number of workers; asks first if that removes replicas with values. */
async function scale(
  cluster: ClusterInfo,
  replicas: number,
  maximum: number,
  { api, connection, trans }: Workbench,
): Promise<void> {
  const left = Math.max(replicas, maximum);
  const loses = losesBy(left, cluster, connection.clusters, trans);
  const title = trans.__("Scale %1 to %2?", cluster.name, left);
  if (!(await confirmed(title, loses, trans.__("Take them away")))) return;
  await api.scale(cluster.id, replicas, maximum, loses.length > 0);
}

/** Whether the user confirms, given these consequences; does not ask if there are none. */
async function confirmed(title: string, consequences: readonly string[], action: string): Promise<boolean> {
  if (!consequences.length) return true;
  const answer = await showDialog({
    title,
    body: consequences.join(" "),
    buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: action })],
    defaultButton: 0,
  });
  return answer.button.accept;
}

export const clusters: JupyterFrontEndPlugin<void> = {
  id: "workbench-lab:clusters",
  description: "The panel of clusters, and what can be done with them.",
  autoStart: true,
  requires: [IWorkbench, ILayouts, ISettings],
  optional: optional(ICommandPalette, ILayoutRestorer, INotebookTracker, IStateDB),
  activate,
};
