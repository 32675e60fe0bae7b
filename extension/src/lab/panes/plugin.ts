// The plugin of panes: what the page knows about clusters, and the commands that open panes and choose what they show.
import {
  ILabShell,
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin,
} from "@jupyterlab/application";
import { ICommandPalette } from "@jupyterlab/apputils";
import { ServerConnection } from "@jupyterlab/services";
import { IStateDB } from "@jupyterlab/statedb";
import { ITranslator, nullTranslator, type TranslationBundle } from "@jupyterlab/translation";
import { Token } from "@lumino/coreutils";
import type { Widget } from "@lumino/widgets";
import { provideCode } from "../../export/modules";
import { sayWhereOthersAre } from "../../overview/others";
import { INSERT, OPEN } from "../../view";
import { OPENED, VIEWS, type ViewName } from "../../views";
import { textOf } from "../arguments";
import { addCommands, categoryOf, type Command, COMMANDS } from "../commands";
import { helpPane } from "../help";
import { commandIcon, ICON, iconOf, viewIcons } from "../icons";
import { Api, guideAddress, openSocket } from "../server/api";
import { Connection } from "../server/connection";
import { ISessions, type Sessions } from "../server/sessions";
import type { Settings } from "../settings";
import style from "../style.css";
import { ISettings, optional } from "../tokens";
import { titleOf } from "../words";
import { Baselines } from "./baselines";
import { Followed, IN_FRONT, NEWEST } from "./followed";
import type { Pane, PaneServices } from "./pane";
import { Panes } from "./panes";
import { viewCommands } from "./view_commands";

/** The page's view of all clusters, for the other plugins. */
export interface Workbench extends PaneServices {
  readonly panes: Panes;
  /** When the panes of the last visit are back. */
  readonly restored: Promise<unknown>;
}

export const IWorkbench = new Token<Workbench>("workbench-lab:IWorkbench");

function activate(
  app: JupyterFrontEnd,
  sessions: Sessions,
  settings: Settings,
  palette: ICommandPalette | null,
  restorer: ILayoutRestorer | null,
  translator: ITranslator | null,
  labShell: ILabShell | null,
  state: IStateDB | null,
): Workbench {
  const trans = (translator ?? nullTranslator).load("workbench");
  const server = (app.serviceManager.serverSettings ??
    ServerConnection.makeSettings()) as ServerConnection.ISettings;
  const connection = new Connection(() => openSocket(server));
  document.addEventListener("visibilitychange", () => connection.setVisible(!document.hidden));
  const api = new Api(server);
  provideCode((name) => api.code(name));
  document.head.append(Object.assign(document.createElement("style"), { textContent: style }));
  const services: PaneServices = {
    connection,
    followed: new Followed(connection, sessions),
    api,
    baselines: new Baselines(state),
    trans,
    insertCode: (code) => void app.commands.execute(COMMANDS.insertCode, { code }),
    openRun: (path) => void app.commands.execute(COMMANDS.openRun, { run: path }),
  };
  const area = labShell ? "main" : "down";
  sayWhereOthersAre(
    labShell
      ? trans.__("The panel “Workbench” at the left lists all other views.")
      : trans.__("The command palette lists all other views under “Workbench”."),
  );
  const panes = new Panes(app.shell, services, viewIcons(), area);
  document.addEventListener(OPEN, (event) => {
    const { view } = (event as CustomEvent<{ view: string }>).detail;
    const { cluster, run } = paneOf(panes, event)?.args ?? { cluster: IN_FRONT, run: "" };
    event.preventDefault();
    void app.commands.execute(COMMANDS.openPane, { view, cluster, run });
  });
  document.addEventListener(INSERT, (event) => {
    event.preventDefault();
    services.insertCode((event as CustomEvent<{ code: string }>).detail.code);
  });
  const tables = [
    paneCommands(app, panes, settings, trans),
    followCommands(services, panes),
    viewCommands(app, services, panes, sessions),
    helpCommands(app, panes, area, server, trans),
  ];
  for (const table of tables) addCommands(app, palette, categoryOf(trans), table);
  const restored = Promise.resolve(
    restorer?.restore(panes.tracker, {
      command: COMMANDS.openPane,
      args: (pane) => ({ ...pane.args, restored: true }),
      name: (pane) => pane.id,
    }),
  );
  if (labShell) keepFree(app, panes);
  return { ...services, panes, restored };
}

/** A document that is opened while a pane is in front would hide the panes as a tab among them. */
function keepFree({ shell, restored }: JupyterFrontEnd, panes: Panes): void {
  const seen = new WeakSet();
  const look = () => {
    const { currentWidget } = shell;
    if (!currentWidget || seen.has(currentWidget)) return;
    seen.add(currentWidget);
    if ("context" in currentWidget) setTimeout(() => panes.sendHome(currentWidget));
  };
  const keep = () => {
    for (const widget of panes.around()) seen.add(widget); // they stay as the user has left them
  };
  void restored.then(() => {
    keep();
    shell.currentChanged?.connect(look);
    // Also documents dragged from the file browser, which become current only once they are placed.
    document.addEventListener("lm-drop", () => queueMicrotask(keep), { capture: true });
  });
}

/** The pane in which an event has happened, or null. */
function paneOf(panes: Panes, event: Event): Pane | null {
  return panes.tracker.find((pane) => event.composedPath().includes(pane.node)) ?? null;
}

function paneCommands(
  app: JupyterFrontEnd,
  panes: Panes,
  settings: Settings,
  trans: TranslationBundle,
): Record<string, Command> {
  const icon = iconOf("icon", ICON);
  return {
    [COMMANDS.openPane]: {
      label: (args) => {
        const view = textOf(args["view"]);
        return Object.hasOwn(VIEWS, view)
          ? trans.__("Open pane: %1", titleOf(view as ViewName, trans))
          : trans.__("Open a pane");
      },
      caption: trans.__("Opens a view of the cluster of the notebook in front, or of the newest one."),
      icon,
      offered: OPENED.map((view) => ({ view })),
      execute: (given) => {
        const view = textOf(given["view"]) || "overview";
        if (!Object.hasOwn(VIEWS, view)) throw new Error(trans.__("There is no view “%1”.", view));
        const wanted = {
          view: view as ViewName,
          cluster: textOf(given["cluster"] ?? (settings.followsNewest ? NEWEST : IN_FRONT)),
          run: textOf(given["run"]),
          key: typeof given["key"] === "string" ? given["key"] : undefined,
        };
        const pane = panes.show(wanted, { ...panes.beside(), activate: given["restored"] !== true });
        // A second time, later, because the palette returns the focus to what had it, such as the notebook beside.
        if (given["restored"] !== true)
          setTimeout(() => {
            if (!pane.isDisposed) panes.activate(pane);
          });
        return pane;
      },
    },
    [COMMANDS.openRun]: {
      label: trans.__("Open a recorded run"),
      caption: trans.__("Lists the recorded runs below the folder of the server."),
      icon: commandIcon("run"),
      execute: (args) =>
        app.commands.execute(
          COMMANDS.openPane,
          args["run"] ? { view: "replay", run: args["run"] } : { view: "runs" },
        ),
    },
  };
}

function followCommands(services: PaneServices, panes: Panes): Record<string, Command> {
  const { connection, followed, trans } = services;
  const isEnabled = () => panes.current !== null;
  return {
    [COMMANDS.followNotebook]: {
      label: trans.__("Follow the notebook in front"),
      caption: trans.__("Shows in this pane the cluster of the notebook that you work in."),
      icon: commandIcon("follow"),
      isEnabled,
      execute: () => panes.current?.follow(IN_FRONT),
    },
    [COMMANDS.followNewest]: {
      label: trans.__("Follow the newest cluster"),
      caption: trans.__("Shows in this pane the cluster that started last, of any notebook or script."),
      icon: commandIcon("follow"),
      isEnabled,
      execute: () => panes.current?.follow(NEWEST),
    },
    [COMMANDS.nextCluster]: {
      label: trans.__("Show the next cluster"),
      caption: trans.__("Shows another cluster in this pane."),
      icon: commandIcon("next"),
      isEnabled,
      execute: () => panes.current?.next(),
    },
    [COMMANDS.beside]: {
      label: trans.__("Show the next cluster beside this one"),
      caption: trans.__("Opens the same view of another cluster at the right of this pane."),
      icon: commandIcon("beside"),
      isEnabled: () => panes.current !== null && !panes.current.args.run,
      execute: () => {
        const pane = panes.current;
        if (!pane) return;
        // A pane that follows something would move with it, and show the same twice.
        const own = followed.find(pane.args.cluster)?.id ?? "";
        if (own) pane.follow(own);
        const cluster = connection.after(own);
        panes.show(
          { ...pane.args, cluster, key: undefined },
          { activate: true, mode: "split-right", ref: pane.id },
        );
      },
    },
  };
}

function helpCommands(
  { shell }: JupyterFrontEnd,
  panes: Panes,
  area: string,
  settings: ServerConnection.ISettings,
  trans: TranslationBundle,
): Record<string, Command> {
  let help: Widget | null = null;
  return {
    [COMMANDS.help]: {
      label: trans.__("Workbench help"),
      caption: trans.__("Lists the panes and the keys."),
      icon: commandIcon("help"),
      execute: () => {
        if (!help || help.isDisposed) help = helpPane(trans);
        if (!help.isAttached) shell.add(help, area);
        panes.activate(help);
      },
    },
    [COMMANDS.guide]: {
      label: trans.__("Workbench guide"),
      caption: trans.__("Opens the documentation in another tab of the browser, without a network."),
      icon: commandIcon("guide"),
      execute: () => window.open(guideAddress(settings), "_blank", "noopener"),
    },
  };
}

export const panes: JupyterFrontEndPlugin<Workbench> = {
  id: "workbench-lab:panes",
  description: "The panes of workbench, and what they show.",
  autoStart: true,
  provides: IWorkbench,
  requires: [ISessions, ISettings],
  optional: optional(ICommandPalette, ILayoutRestorer, ITranslator, ILabShell, IStateDB),
  activate,
};
