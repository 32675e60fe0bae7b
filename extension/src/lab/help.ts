// The help pane: what the views show, and the keyboard shortcuts, as text.
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";
import { VIEWS, type ViewName } from "../views";
import { titleOf } from "./words";

export function helpPane(trans: TranslationBundle): Widget {
  const pane = new Widget();
  pane.id = "workbench-help";
  pane.addClass("wb-help");
  pane.node.tabIndex = 0;
  pane.title.label = trans.__("Workbench help");
  pane.title.closable = true;
  const head = (text: string) => Object.assign(document.createElement("h2"), { textContent: text });
  const line = (text: string) => Object.assign(document.createElement("p"), { textContent: text });
  const list = (texts: readonly string[]) => {
    const all = document.createElement("ul");
    all.append(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
    return all;
  };
  pane.node.append(
    head(trans.__("See a cluster")),
    line(
      trans.__(
        "Run wb.connect() or make a strategy, in a notebook or in a script elsewhere on this machine. The cluster appears by itself in the left panel. Panes and status bar show the cluster of the notebook in front; a pane shows another one where you choose it at its top.",
      ),
    ),
    head(trans.__("Panes")),
    list((Object.keys(VIEWS) as ViewName[]).map((view) => titleOf(view, trans))),
    line(
      trans.__(
        "wb.inspect(value) and wb.explain_sharding(dataset, strategy) fill the panes of values and of dataset sharding. Panes come back after a reload, and keep what they showed when a kernel ends.",
      ),
    ),
    line(
      trans.__(
        "Named layouts put panes where they belong: “Open layout” in the palette, the buttons of the left panel, or %workbench layout overview in a cell. “Save the layout of panes” keeps yours.",
      ),
    ),
    head(trans.__("Keys")),
    list([
      trans.__("Tab, arrow keys: every number of a view; Enter on a heading sorts"),
      trans.__("Enter in a chart: pin a step in all views of its run; Escape lets it go"),
      trans.__("Alt F in a pane: follow the notebook in front"),
      trans.__("Alt N in a pane: follow the newest cluster, of any notebook or script"),
      trans.__("Alt C in a pane: the next cluster"),
      trans.__("Alt B in a pane: the next cluster beside this one"),
      trans.__("Alt P in a pane: the left panel"),
      trans.__("Alt E in a pane, E in a chart: export the view"),
      trans.__("Alt T in a pane, T in a chart: show as table, or as chart"),
      trans.__("Alt S in a pane, Space in a chart: pause the view, or let it go on"),
      trans.__("Alt G in a pane, F in a chart: show the newest steps again"),
      trans.__("Alt J, Alt K in a pane: the next alert, the previous one"),
      trans.__("Alt R in a pane: compare two recorded runs"),
      trans.__("Alt M in a pane: take data rates over size as baseline"),
      trans.__("Alt Y in a pane: copy the code that makes the view"),
      trans.__("The command palette has all of it under Workbench"),
    ]),
    head(trans.__("In Python")),
    line(trans.__("help(wb), wb.collectives(), wb.diagnose() and wb.open_run(path) say the same as text.")),
    head(trans.__("The guide")),
    line(
      trans.__(
        "“Workbench guide” in the Help menu opens tutorials, how-to guides and the reference in another tab. It needs no network.",
      ),
    ),
  );
  return pane;
}
