// The plugin of the status bar: the state of the cluster of the notebook in front, in a few words.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { IStatusBar } from "@jupyterlab/statusbar";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";
import { rateText } from "../format";
import { COMMANDS } from "./commands";
import type { Followed } from "./panes/followed";
import { IN_FRONT } from "./panes/followed";
import { IWorkbench, type Workbench } from "./panes/plugin";
import type { ClusterInfo } from "./server/messages";
import type { Settings } from "./settings";
import { ISettings, optional } from "./tokens";
import { isWrong, statusWord } from "./words";

/** For example "4/4 replicas • 38 GB/s • 0 NaN". */
export function statusText(cluster: ClusterInfo, trans: TranslationBundle): string {
  const { summary } = cluster;
  const parts = [trans.__("%1/%2 replicas", summary.replicas_live, summary.replicas)];
  if (summary.busbw !== null) parts.push(rateText(summary.busbw));
  parts.push(trans.__("%1 NaN", summary.nan));
  if (isWrong(summary)) parts.push(`⚠ ${summary.sentence}`);
  if (summary.status === "stale") parts.push(`⚠ ${statusWord(summary.status, trans)}`);
  return parts.join(" • ");
}

/** What the numbers mean, and where to see more. */
export function titleText(cluster: ClusterInfo, trans: TranslationBundle): string {
  const { summary } = cluster;
  const parts = [trans.__("Workbench: %1", summary.text)];
  if (summary.sentence) parts.push(summary.sentence);
  if (summary.nan)
    parts.push(
      trans._n(
        "%1 time NaN or infinity was found: see the pane Alerts and log",
        "%1 times NaN or infinity was found: see the pane Alerts and log",
        summary.nan,
        summary.nan,
      ),
    );
  return parts.join("\n");
}

/** Why there is nothing to show, and how to change that. */
export function noClusterText(notebook: string, ended: boolean, trans: TranslationBundle): string {
  if (!notebook) return trans.__("Workbench: no cluster runs. Run wb.connect() in a notebook or a script.");
  return ended
    ? trans.__(
        "Workbench: the cluster of %1 has ended. Panes show what it was like; run its cells again for a new one.",
        notebook,
      )
    : trans.__(
        "Workbench: %1 drives no cluster. Run wb.connect() there, or click to start workers.",
        notebook,
      );
}

export class StatusItem extends Widget {
  constructor(followed: Followed, trans: TranslationBundle, onClick: () => void) {
    super();
    this.addClass("wb-status-item");
    const button = document.createElement("button");
    button.type = "button";
    button.addEventListener("click", onClick);
    this.node.append(button);
    const stop = new AbortController();
    this.disposed.connect(() => stop.abort());
    const draw = () => {
      const cluster = followed.find(IN_FRONT);
      const over = !cluster || cluster.summary.status === "stopped";
      button.textContent = over ? trans.__("no cluster") : statusText(cluster, trans);
      button.title = over
        ? noClusterText(followed.front?.name ?? "", cluster !== undefined, trans)
        : titleText(cluster, trans);
    };
    followed.listen(draw, stop.signal);
    draw();
  }
}

export const status: JupyterFrontEndPlugin<void> = {
  id: "workbench-lab:status",
  description: "The cluster of the notebook in front, in the status bar.",
  autoStart: true,
  requires: [IWorkbench, ISettings],
  optional: optional(IStatusBar),
  activate: (
    { commands }: JupyterFrontEnd,
    { followed, trans }: Workbench,
    settings: Settings,
    bar: IStatusBar | null,
  ) => {
    if (!bar) return;
    const item = new StatusItem(followed, trans, () => void commands.execute(COMMANDS.showPanel));
    // The status bar shows an item again at each change of the layout, unless this returns false.
    const isActive = () => settings.statusBar;
    bar.registerStatusItem("workbench:status", { item, align: "left", rank: 50, isActive });
    const show = () => item.setHidden(!settings.statusBar);
    settings.listen(show);
    show();
  },
};
