// Commands for the actions of a pane's view: export, table, pause, alerts, baselines, comparisons, code.
import type { JupyterFrontEnd } from "@jupyterlab/application";
import { Clipboard, showErrorMessage } from "@jupyterlab/apputils";
import { pins } from "../../parts/plane";
import { textOf } from "../arguments";
import { categoryOf, type Command, COMMANDS } from "../commands";
import { commandIcon } from "../icons";
import type { Sessions } from "../server/sessions";
import type { Action } from "./actions";
import { chooseRuns } from "./choosing_runs";
import { IN_FRONT } from "./followed";
import { makingCode } from "./making_code";
import type { Pane, PaneServices } from "./pane";
import type { Panes } from "./panes";

export function viewCommands(
  app: JupyterFrontEnd,
  services: PaneServices,
  panes: Panes,
  sessions: Sessions,
): Record<string, Command> {
  const { api, baselines, trans } = services;
  /** For actions that have a button in the pane's view. */
  const button = (action: Action) => ({
    icon: commandIcon(action),
    isEnabled: () => panes.current?.can(action) ?? false,
    execute: async () => {
      await focusIsBack();
      await panes.current?.act(action);
    },
  });
  const isOn = (action: Action) => () => panes.current?.isOn(action) ?? false;
  const walk = (way: "next" | "previous") => ({
    isEnabled: () => panes.current?.hasAlerts ?? false,
    execute: async () => {
      const pane = panes.current;
      if (!pane) return;
      const log = await logOf(app, pane);
      await focusIsBack();
      await log.walk(way);
    },
  });
  const compare = async (first: string, second: string) => {
    const { runs } = await api.runs();
    const chosen =
      first && second ? [first, second] : await chooseRuns(runs, panes.current?.args.run ?? "", trans);
    if (!chosen) return;
    const wanted = { view: "runs", cluster: IN_FRONT, run: "" } as const;
    panes.show(wanted, panes.beside()).compare(chosen[0]!, chosen[1]!);
  };
  /** What the chart under the open menu says about the pointer's place, and how to pin its step. */
  const pointed = () => {
    const chart = app.contextMenuHitTest((element) => element.classList.contains("wb-chart"));
    const next = chart?.nextElementSibling;
    return {
      pin: chart && pins.get(chart),
      said: next?.matches("output") ? next.textContent : "", // only the charts that describe a place have one
    };
  };
  return {
    [COMMANDS.pinStep]: {
      label: trans.__("Pin the step"),
      caption: trans.__("Has all views of the run show the step below the pointer, as a click does."),
      icon: commandIcon("pin"),
      isEnabled: () => !!pointed().pin,
      offered: [],
      execute: () => pointed().pin?.(),
    },
    [COMMANDS.copyPoint]: {
      label: trans.__("Copy what the chart says here"),
      caption: trans.__("Copies the line below the chart: what is below the pointer, in words."),
      icon: commandIcon("code"),
      isEnabled: () => pointed().said !== "",
      offered: [],
      execute: () => Clipboard.copyToSystem(pointed().said),
    },
    [COMMANDS.export]: {
      label: trans.__("Export the view …"),
      caption: trans.__("Opens the view's menu of pictures, tables, traces and reports."),
      ...button("export"),
    },
    [COMMANDS.table]: {
      label: trans.__("Show as table"),
      caption: trans.__("Shows the numbers of the chart as a table, or the chart again."),
      ...button("table"),
      isToggled: isOn("table"),
    },
    [COMMANDS.pause]: {
      label: trans.__("Pause the view"),
      caption: trans.__("Lets the view stand still while the run goes on, or move again."),
      ...button("pause"),
      isToggled: isOn("pause"),
    },
    [COMMANDS.newestSteps]: {
      label: trans.__("Show the newest steps"),
      caption: trans.__("Ends a pause, and lets all views follow the run again after steps were picked out."),
      icon: commandIcon("newest"),
      isEnabled: () => panes.current?.isBehind ?? false,
      execute: () => panes.current?.catchUp(),
    },
    [COMMANDS.nextAlert]: {
      label: trans.__("Next alert"),
      caption: trans.__(
        "Goes to the next warning or error in the log. Enter opens the view that explains it.",
      ),
      icon: commandIcon("alert"),
      ...walk("next"),
    },
    [COMMANDS.previousAlert]: {
      label: trans.__("Previous alert"),
      caption: trans.__("Goes back to the warning or error before, in the log."),
      icon: commandIcon("alert"),
      ...walk("previous"),
    },
    [COMMANDS.compare]: {
      label: trans.__("Compare two recorded runs …"),
      caption: trans.__(
        "Shows what got slower from one recorded run to another, and whether that is chance.",
      ),
      icon: commandIcon("compare"),
      execute: ({ first, second }) =>
        compare(textOf(first), textOf(second)).catch((error: unknown) =>
          showErrorMessage(categoryOf(trans), error instanceof Error ? error.message : String(error)),
        ),
    },
    [COMMANDS.takeBaseline]: {
      label: trans.__("Take as baseline"),
      caption: trans.__("Keeps the data rates over size: a grey line behind all later ones."),
      icon: commandIcon("baseline"),
      isEnabled: () => (panes.current?.sweeps.length ?? 0) > 0,
      execute: () => panes.current?.takeBaseline(),
    },
    [COMMANDS.dropBaseline]: {
      label: trans.__("Drop the baseline"),
      caption: trans.__("Shows data rates over size without those that were kept."),
      icon: commandIcon("baseline"),
      isEnabled: () => !baselines.isEmpty,
      execute: () => baselines.keep(null),
    },
    [COMMANDS.copyCode]: {
      label: trans.__("Copy the code of the view"),
      caption: trans.__("Copies the line of Python that shows the same in a cell."),
      icon: commandIcon("code"),
      isEnabled: () => panes.current !== null,
      execute: () => {
        const pane = panes.current;
        if (!pane) return;
        const { view, run } = pane.args;
        Clipboard.copyToSystem(makingCode(view, run, sessions.notebook?.context.path ?? ""));
      },
    },
  };
}

/** When the palette and menus have returned the focus; until then, a focused element in a pane would lose it. */
function focusIsBack(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** The pane itself if it is a log, otherwise a log of the same run or cluster. */
async function logOf(app: JupyterFrontEnd, pane: Pane): Promise<Pane> {
  const { view, cluster, run } = pane.args;
  if (view === "log") return pane;
  return (await app.commands.execute(COMMANDS.openPane, { view: "log", cluster, run })) as Pane;
}
