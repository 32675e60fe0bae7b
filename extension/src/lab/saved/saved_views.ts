// The plugin that draws saved views in outputs.
import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { IRenderMimeRegistry } from "@jupyterlab/rendermime";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";
import { SAVED } from "./saved_model";
import { SavedView } from "./saved_view";
import { ISessions, type Sessions } from "../server/sessions";
import { optional } from "../tokens";

/** Before the renderer of widgets (-10), which ours asks, and which does not know saved views. */
const RANK = -20;

export const savedViews: JupyterFrontEndPlugin<void> = {
  id: "workbench-lab:saved-views",
  description: "Views in outputs of notebooks, with and without a kernel.",
  autoStart: true,
  requires: [IRenderMimeRegistry, ISessions],
  optional: optional(ITranslator),
  activate: (
    _: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    sessions: Sessions,
    translator: ITranslator | null,
  ) => {
    const trans = (translator ?? nullTranslator).load("workbench");
    rendermime.addFactory(
      // Safe, because it draws data as text, and runs nothing from an output that is not trusted.
      { safe: true, mimeTypes: [SAVED], createRenderer: () => new SavedView(rendermime, sessions, trans) },
      RANK,
    );
  },
};
