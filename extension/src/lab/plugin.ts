// Puts panel, panes, status item and commands into JupyterLab. Every service but the commands may be missing, as in Notebook 7.
import {
  ILabShell,
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin,
} from "@jupyterlab/application";
import { Dialog, ICommandPalette, InputDialog, showDialog, showErrorMessage } from "@jupyterlab/apputils";
import { INotebookTracker } from "@jupyterlab/notebook";
import { ServerConnection } from "@jupyterlab/services";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { IStatusBar } from "@jupyterlab/statusbar";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";
import type { Widget } from "@lumino/widgets";
import { provideCode } from "../export/code";
import { OPENED, VIEWS, type ViewName } from "../views";
import { Api, openSocket } from "./server/api";
import { textOf } from "./arguments";
import { insertConnectCode } from "./connect_code";
import { Connection } from "./server/connection";
import { Followed, IN_FRONT, NEWEST } from "./panes/followed";
import { helpPane } from "./help";
import { iconOf, viewIcons } from "./icons";
import { LAYOUT_COMMANDS, Layouts } from "./layouts/layout_commands";
import type { ClusterInfo } from "./server/messages";
import type { PaneServices } from "./panes/pane";
import { MAX_REPLICAS, Panel } from "./panes/panel";
import { Panes, type Place } from "./panes/panes";
import { ISessions, type Sessions } from "./server/sessions";
import { StatusItem } from "./status";
import { endsWith } from "./stopping";
import style from "./style.css";
import { optional } from "./tokens";
import { titleOf } from "./words";

const PLUGIN = "workbench-lab:plugin";

/** Ids of the commands. */
export const COMMANDS = {
  openPane: "workbench:open-pane",
  openRun: "workbench:open-run",
  showPanel: "workbench:show-panel",
  followNotebook: "workbench:follow-notebook",
  followNewest: "workbench:follow-newest",
  nextCluster: "workbench:next-cluster",
  beside: "workbench:show-beside",
  insertCode: "workbench:insert-connect-code",
  start: "workbench:start-workers",
  scale: "workbench:scale-workers",
  stop: "workbench:stop-cluster",
  help: "workbench:help",
} as const;

const ICON =
  '<circle cx="8" cy="3" r="2"/><circle cx="3" cy="12" r="2"/><circle cx="13" cy="12" r="2"/>' +
  '<path d="M7.3 4.4 3.9 10.2l.9.5L8.2 4.9zM8.7 4.4l3.4 5.8-.9.5L7.8 4.9zM5 11.5h6v1H5z"/>';

function activate(
  app: JupyterFrontEnd,
  sessions: Sessions,
  palette: ICommandPalette | null,
  restorer: ILayoutRestorer | null,
  notebooks: INotebookTracker | null,
  registry: ISettingRegistry | null,
  statusBar: IStatusBar | null,
  translator: ITranslator | null,
  labShell: ILabShell | null,
): void {
  const trans = (translator ?? nullTranslator).load("workbench");
  const category = trans.__("Workbench");
  const settings = (app.serviceManager.serverSettings ??
    ServerConnection.makeSettings()) as ServerConnection.ISettings;
  const connection = new Connection(() => openSocket(settings));
  document.addEventListener("visibilitychange", () => connection.setVisible(!document.hidden));
  const followed = new Followed(connection, sessions);
  const api = new Api(settings);
  provideCode(() => api.viewsCode());
  const icon = iconOf("icon", ICON);
  const icons = viewIcons();
  const { commands, shell } = app;
  const run = (command: string, args: Record<string, unknown> = {}) => void commands.execute(command, args);
  document.head.append(Object.assign(document.createElement("style"), { textContent: style }));

  const services: PaneServices = {
    connection,
    followed,
    api,
    trans,
    openRun: (path) => run(COMMANDS.openRun, { run: path }),
  };
  const area = labShell ? "main" : "down";
  const panes = new Panes(shell, services, icons, area);
  const layouts = new Layouts({
    app,
    palette,
    sessions,
    trans,
    category,
    arrange: (area) => panes.arrange(area),
    current: () => panes.layout(),
    publish: (names) => api.keepLayoutNames(names),
  });
  /** Stops a cluster, after a question where that loses something. */
  const stop = async (cluster: ClusterInfo): Promise<void> => {
    const ends = endsWith(cluster, connection.clusters, trans);
    if (ends.length) {
      const answer = await showDialog({
        title: trans.__("Stop %1?", cluster.name),
        body: ends.join(" "),
        buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: trans.__("Stop") })],
        defaultButton: 0,
      });
      if (!answer.button.accept) return;
    }
    await api.stop(cluster.id);
  };
  const panel = new Panel(
    connection,
    layouts,
    {
      start: (replicas) => api.start(replicas),
      scale: (cluster, replicas) => api.scale(cluster.id, replicas),
      stop,
      insert: (cluster) => run(COMMANDS.insertCode, { cluster: cluster.id }),
      openPane: (view, cluster) => run(COMMANDS.openPane, { view, cluster }),
      openRun: services.openRun,
      openLayout: (name) => run(LAYOUT_COMMANDS.open, { name }),
      saveLayout: () => run(LAYOUT_COMMANDS.save),
    },
    trans,
  );
  panel.title.icon = icon;
  shell.add(panel, "left", { rank: 400 });
  restorer?.add(panel, "workbench-panel");

  /** The cluster that a command is about: named, under the context menu, of the notebook in front, or the newest. */
  const subject = (args: Record<string, unknown>): ClusterInfo | undefined => {
    const node = app.contextMenuHitTest((element) => element.dataset["id"] !== undefined);
    const id = textOf(args["cluster"]) || (node?.dataset["id"] ?? "");
    if (id) return connection.clusters.find((cluster) => cluster.id === id);
    return followed.find(IN_FRONT) ?? connection.newest();
  };
  const failed = (error: unknown) =>
    showErrorMessage(category, error instanceof Error ? error.message : String(error));

  commands.addCommand(COMMANDS.openPane, {
    label: (args) => {
      const view = textOf(args["view"]);
      return Object.hasOwn(VIEWS, view)
        ? trans.__("Open pane: %1", titleOf(view as ViewName, trans))
        : trans.__("Open a pane");
    },
    icon,
    execute: (given) => {
      const view = textOf(given["view"]) || "collectives";
      if (!Object.hasOwn(VIEWS, view)) throw new Error(trans.__("There is no view “%1”.", view));
      const wanted = {
        view: view as ViewName,
        cluster: textOf(given["cluster"]),
        run: textOf(given["run"]),
        key: typeof given["key"] === "string" ? given["key"] : undefined,
      };
      const pane = panes.show(wanted, { ...panes.beside(), activate: given["restored"] !== true });
      // Once more, and later: the palette gives the focus back to what had it, such as the notebook beside.
      if (given["restored"] !== true)
        setTimeout(() => {
          if (!pane.isDisposed) panes.activate(pane);
        });
      return pane;
    },
  });
  commands.addCommand(COMMANDS.openRun, {
    label: trans.__("Open a recorded run"),
    icon,
    execute: (args) =>
      commands.execute(
        COMMANDS.openPane,
        args["run"] ? { view: "replay", run: args["run"] } : { view: "runs" },
      ),
  });
  commands.addCommand(COMMANDS.showPanel, {
    label: trans.__("Show the panel of clusters"),
    icon,
    execute: () => shell.activateById(panel.id),
  });
  commands.addCommand(COMMANDS.followNotebook, {
    label: trans.__("Follow the notebook in front"),
    isEnabled: () => panes.current !== null,
    execute: () => panes.current?.follow(IN_FRONT),
  });
  commands.addCommand(COMMANDS.followNewest, {
    label: trans.__("Follow the newest cluster"),
    isEnabled: () => panes.current !== null,
    execute: () => panes.current?.follow(NEWEST),
  });
  commands.addCommand(COMMANDS.nextCluster, {
    label: trans.__("Show the next cluster"),
    isEnabled: () => panes.current !== null,
    execute: () => panes.current?.next(),
  });
  commands.addCommand(COMMANDS.beside, {
    label: trans.__("Show the next cluster beside this one"),
    isEnabled: () => panes.current !== null && !panes.current.args.run,
    execute: () => {
      const pane = panes.current;
      if (!pane) return;
      // One that follows something would move with it, and show the same twice.
      const own = followed.find(pane.args.cluster)?.id ?? "";
      if (own) pane.follow(own);
      const cluster = connection.after(own);
      panes.show(
        { ...pane.args, cluster, key: undefined },
        { activate: true, mode: "split-right", ref: pane.id },
      );
    },
  });
  commands.addCommand(COMMANDS.insertCode, {
    label: trans.__("Insert the code that connects to a cluster"),
    isEnabled: () => notebooks !== null,
    execute: (args) => {
      const notebook = notebooks?.currentWidget;
      const cluster = subject(args);
      if (!notebook) return failed(trans.__("Open a notebook first: the code goes below its active cell."));
      if (cluster) insertConnectCode(notebook, cluster);
      return undefined;
    },
  });
  const askReplicas = async (title: string, value: number): Promise<number | null> => {
    const answer = await InputDialog.getNumber({ title, label: trans.__("Replicas"), value });
    if (!answer.button.accept) return null;
    const replicas = Number(answer.value);
    if (Number.isInteger(replicas) && replicas >= 1 && replicas <= MAX_REPLICAS) return replicas;
    await failed(trans.__("The number of replicas is a whole number from 1 to %1.", MAX_REPLICAS));
    return null;
  };
  commands.addCommand(COMMANDS.start, {
    label: trans.__("Start workers …"),
    execute: async () => {
      const replicas = await askReplicas(trans.__("Start workers"), 2);
      if (replicas !== null) await api.start(replicas).catch(failed);
    },
  });
  commands.addCommand(COMMANDS.scale, {
    label: trans.__("Scale workers …"),
    isEnabled: () => connection.clusters.some((cluster) => cluster.kind === "workers"),
    execute: async (args) => {
      const named = subject(args);
      const cluster =
        named?.kind === "workers" ? named : connection.clusters.find((one) => one.kind === "workers");
      if (!cluster) return;
      const replicas = await askReplicas(trans.__("Scale %1", cluster.name), cluster.summary.replicas);
      if (replicas !== null) await api.scale(cluster.id, replicas).catch(failed);
    },
  });
  commands.addCommand(COMMANDS.stop, {
    label: trans.__("Stop the cluster"),
    isEnabled: () => connection.clusters.length > 0,
    execute: async (args) => {
      const cluster = subject(args);
      if (cluster) await stop(cluster).catch(failed);
    },
  });
  let help: Widget | null = null;
  commands.addCommand(COMMANDS.help, {
    label: trans.__("Workbench help"),
    execute: () => {
      if (!help || help.isDisposed) help = helpPane(trans);
      if (!help.isAttached) shell.add(help, area);
      panes.activate(help);
    },
  });

  if (palette) {
    for (const view of OPENED) palette.addItem({ command: COMMANDS.openPane, category, args: { view } });
    for (const [name, command] of Object.entries(COMMANDS)) {
      if (name !== "openPane") palette.addItem({ command, category });
    }
  }
  if (statusBar) {
    const item = new StatusItem(followed, trans, () => run(COMMANDS.showPanel));
    statusBar.registerStatusItem("workbench:status", { item, align: "left", rank: 50 });
  }

  const restoring = restorer?.restore(panes.tracker, {
    command: COMMANDS.openPane,
    args: (pane) => ({ ...pane.args, restored: true }),
    name: (pane) => pane.id,
  });
  void Promise.all([registry?.load(PLUGIN).catch(() => null), app.restored, restoring]).then(([loaded]) => {
    layouts.use(loaded ?? null);
    layouts.openAtStart(panes.tracker.size === 0, somethingInFront(shell));
    const views = (loaded?.composite["openOnFirstCluster"] as string[] | undefined) ?? [];
    openOnFirstCluster(followed, async () => {
      await somethingInFront(shell);
      if (panes.tracker.size > 0) return;
      let place: Place = { activate: false, mode: panes.side() };
      for (const view of views.filter((name) => Object.hasOwn(VIEWS, name))) {
        // Beside what the person works in, and without taking the focus from there.
        const pane = panes.show({ view: view as ViewName, cluster: IN_FRONT, run: "" }, place);
        if (place.mode !== "tab-after") place = { activate: false, mode: "tab-after", ref: pane.id };
      }
    });
  });
}

/** When there is something to open panes beside: a page that opens a notebook has it only after a moment. */
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

/** Calls `run` once, when a notebook in front drives a live cluster; never for a job that is not the page's. */
function openOnFirstCluster(followed: Followed, run: () => Promise<void>): void {
  const stop = new AbortController();
  const look = () => {
    const cluster = followed.front && followed.find(IN_FRONT);
    if (stop.signal.aborted || !cluster || cluster.summary.status === "stopped") return;
    stop.abort();
    void run();
  };
  followed.listen(look, stop.signal);
  look();
}

export const panes: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: "Clusters of workbench: panel, panes, status.",
  autoStart: true,
  requires: [ISessions],
  optional: optional(
    ICommandPalette,
    ILayoutRestorer,
    INotebookTracker,
    ISettingRegistry,
    IStatusBar,
    ITranslator,
    ILabShell,
  ),
  activate,
};
