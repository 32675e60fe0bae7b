// A view in an output: as it was saved, until a kernel shows it live, and again afterwards.
import type { IRenderMimeRegistry, MimeModel, Renderer } from "@jupyterlab/rendermime";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Panel, Widget } from "@lumino/widgets";
import { NEWEST, type Newest } from "../../attach";
import { type Mounted, mount } from "../../mount";
import type { AnyModel } from "../server/messages";
import { readSaved, SAVED, type Saved, written } from "./saved_model";
import type { Sessions } from "../server/sessions";

export const WIDGET = "application/vnd.jupyter.widget-view+json";

/**
 * Draws an output's view.
 *
 * JupyterLab's own renderer of widgets says "Loading widget..." or "model not found" where no kernel has the widget. Where
 * one has, that renderer is put into the place of the saved view as soon as it has drawn something, and its newest model is
 * kept in the output when the notebook is saved.
 */
export class SavedView extends Panel implements Renderer {
  #rendermime: IRenderMimeRegistry;
  #sessions: Sessions;
  #caption: string;
  #output: MimeModel | null = null;
  #still: Widget | null = null;
  #live: Widget | null = null;
  #newest: Saved | null = null; // what the live view has drawn and the output does not contain yet
  #attached = new AbortController();
  #observer = new MutationObserver(() => this.#choose());

  constructor(rendermime: IRenderMimeRegistry, sessions: Sessions, trans: TranslationBundle) {
    super();
    this.#caption = trans.__("As it was last seen; run the cell to see it live.");
    this.#rendermime = rendermime;
    this.#sessions = sessions;
    this.addClass("wb-saved");
    this.node.addEventListener(NEWEST, (event) => {
      const { view, model } = (event as CustomEvent<Newest>).detail;
      this.#newest = { view, model };
    });
  }

  async renderModel(output: MimeModel): Promise<void> {
    this.#output = output;
    if (!this.#shownLive()) await this.#drawStill();
    this.#look();
  }

  override dispose(): void {
    this.#observer.disconnect();
    this.#attached.abort();
    super.dispose();
  }

  protected override onAfterAttach(): void {
    this.#attached = new AbortController();
    const { signal } = this.#attached;
    this.#sessions.onChange(() => this.#look(), signal);
    this.#sessions.onSave((notebook) => {
      if (notebook.node.contains(this.node)) this.#keepNewest();
    }, signal);
    this.#look();
  }

  protected override onBeforeDetach(): void {
    this.#attached.abort();
  }

  /**
   * Shows the widget as long as a kernel has it.
   *
   * Only outputs that are trusted show what a kernel sends. Widgets whose state, code included, JupyterLab keeps in the
   * notebook are not shown here: no kernel has them.
   */
  #look(): void {
    const output = this.#output;
    if (!output?.trusted || !this.isAttached) return;
    const id = (output.data[WIDGET] as { model_id?: unknown } | undefined)?.model_id;
    const showing = typeof id === "string" ? this.#sessions.showing(id, this.node) : undefined;
    if (this.#live) {
      if (!showing) this.#endLive();
      return;
    }
    if (!showing) return;
    const renderer = showing.createRenderer(WIDGET);
    this.#live = renderer;
    renderer.addClass("wb-saved-waiting");
    this.#observer.observe(renderer.node, { childList: true, subtree: true, attributeFilter: ["class"] });
    this.addWidget(renderer);
    void renderer.renderModel(output);
  }

  /** Live if that shows something, otherwise as saved. */
  #choose(): void {
    const live = this.#live;
    if (!live) return;
    if (this.#shownLive()) {
      if (!live.node.classList.contains("wb-saved-waiting")) return;
      live.node.classList.remove("wb-saved-waiting");
      this.#still?.dispose();
      this.#still = null;
      // From now on, only whether it is hidden matters, not what is drawn in it ten times a second.
      this.#observer.disconnect();
      this.#observer.observe(live.node, { attributeFilter: ["class"] });
    } else if (live.isHidden) {
      this.#endLive(); // the kernel has closed the widget
    }
  }

  #endLive(): void {
    this.#observer.disconnect();
    this.#live?.dispose();
    this.#live = null;
    void this.#drawStill();
  }

  #shownLive(): boolean {
    return this.#live !== null && !this.#live.isHidden && this.#live.node.querySelector(".wb") !== null;
  }

  async #drawStill(): Promise<void> {
    const output = this.#output;
    if (!output) return;
    const saved = this.#newest ?? readSaved(output.data[SAVED]);
    if (!saved) return this.#fallBack();
    if (this.#still instanceof Still && this.#still.saved.view === saved.view) this.#still.update(saved);
    else this.#put(new Still(saved, this.#caption, () => queueMicrotask(() => void this.#fallBack())));
  }

  /** What the output would show without workbench. */
  async #fallBack(): Promise<void> {
    const output = this.#output;
    if (!output) return;
    const { [SAVED]: _, [WIDGET]: __, ...rest } = output.data;
    const mime = this.#rendermime.preferredMimeType(rest, output.trusted ? "any" : "ensure");
    if (!mime) return;
    const renderer = this.#rendermime.createRenderer(mime);
    this.#put(renderer);
    await renderer.renderModel(output);
  }

  #put(still: Widget): void {
    this.#still?.dispose();
    this.#still = still;
    this.insertWidget(0, still);
  }

  #keepNewest(): void {
    const output = this.#output;
    if (!output || !this.#newest) return;
    output.setData({ data: { ...output.data, [SAVED]: written(this.#newest) } });
    this.#newest = null;
  }
}

/** A view of a model that nothing changes. */
class Still extends Widget {
  #mounted: Mounted<AnyModel> | null = null;
  #view = document.createElement("div");

  constructor(
    public saved: Saved,
    caption: string,
    private readonly onFailed: () => void,
  ) {
    super();
    const note = document.createElement("p");
    note.className = "wb-saved-note";
    note.textContent = caption;
    this.node.append(this.#view, note);
  }

  update(saved: Saved): void {
    this.saved = saved;
    this.#mounted?.update(ended(saved.model));
  }

  protected override onAfterAttach(): void {
    const { view, model } = this.saved;
    try {
      this.#mounted = mount(view, this.#view, ended(model));
    } catch {
      this.onFailed(); // valid in form, but without meaning
    }
  }

  protected override onBeforeDetach(): void {
    this.#mounted?.unmount();
    this.#mounted = null;
  }
}

/** What was live when it was saved is no longer live. */
function ended(model: AnyModel): AnyModel {
  return "status" in model ? { ...model, status: "replay" } : model;
}
