// Commands for named layouts, which the settings keep, and the other requests for one: the page's address, the
// settings, a cell.
import type { JupyterFrontEnd } from "@jupyterlab/application";
import { type ICommandPalette, InputDialog, showErrorMessage } from "@jupyterlab/apputils";
import type { ISettings } from "@jupyterlab/settingregistry";
import type { TranslationBundle } from "@jupyterlab/translation";
import { textOf } from "../arguments";
import { addCommands } from "../commands";
import { commandIcon } from "../icons";
import { type Area, readArea, SHIPPED } from "./layouts";
import type { Sessions } from "../server/sessions";

/** What `%workbench layout NAME` displays; see workbench/ui/layouts.py. */
export const REQUEST = "application/vnd.workbench.layout+json";
export const LAYOUT_COMMANDS = {
  open: "workbench:open-layout",
  save: "workbench:save-layout",
  delete: "workbench:delete-layout",
} as const;
/** In the page's address: `…/lab?workbench-layout=overview`. */
const PARAMETER = "workbench-layout";
const NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,39}$/u;

export interface LayoutServices {
  app: JupyterFrontEnd;
  palette: ICommandPalette | null;
  sessions: Sessions;
  trans: TranslationBundle;
  category: string;
  /** Places the panes as a layout says. */
  arrange(area: Area): void;
  /** The present layout; null if there is no pane. */
  current(): Area | null;
  /** Tells kernels, through the server, which names there are. */
  publish(names: readonly string[]): Promise<void>;
}

export class Layouts {
  #settings: ISettings | null = null;
  #own = new Map<string, Area>();
  #items: { dispose(): void }[] = [];
  #listeners = new Set<() => void>();

  constructor(private readonly services: LayoutServices) {
    const { app, palette, sessions, category, trans } = services;
    addCommands(app, palette, category, {
      [LAYOUT_COMMANDS.open]: {
        label: (args) =>
          args["name"] ? trans.__("Open layout: %1", textOf(args["name"])) : trans.__("Open a layout …"),
        caption: trans.__("Opens several panes at once, each in its place."),
        icon: commandIcon("layout"),
        execute: (args) => this.#attempt(() => this.open(args["name"])),
      },
      [LAYOUT_COMMANDS.save]: {
        label: trans.__("Save the layout of panes …"),
        caption: trans.__("Keeps where the panes lie now under a name."),
        icon: commandIcon("save"),
        execute: (args) => this.#attempt(() => this.#save(args["name"])),
      },
      [LAYOUT_COMMANDS.delete]: {
        label: trans.__("Delete a saved layout …"),
        caption: trans.__("Forgets a layout that you saved."),
        icon: commandIcon("delete"),
        isEnabled: () => this.#own.size > 0,
        execute: (args) => this.#attempt(() => this.#delete(args["name"])),
      },
    });
    this.#offer();
    sessions.onPublished(({ header, content }) => {
      const data = content["data"] as Record<string, { layout?: unknown } | undefined> | undefined;
      const asked = header.msg_type === "display_data" ? data?.[REQUEST]?.layout : undefined;
      if (asked !== undefined) void this.#attempt(() => this.open(asked));
    }, new AbortController().signal);
  }

  /** All names, workbench's own first. */
  get names(): string[] {
    return [...Object.keys(SHIPPED), ...[...this.#own.keys()].sort()];
  }

  listen(changed: () => void, signal: AbortSignal): void {
    this.#listeners.add(changed);
    signal.addEventListener("abort", () => this.#listeners.delete(changed), { once: true });
  }

  /** Reads the saved layouts from the settings, now and whenever they change. */
  use(settings: ISettings | null): void {
    const { publish } = this.services;
    this.#settings = settings;
    const read = () => {
      const given = Object.entries((settings?.composite["layouts"] ?? {}) as Record<string, unknown>);
      this.#own.clear();
      for (const [name, value] of given) {
        const area = readArea(value);
        if (area && NAME.test(name) && !Object.hasOwn(SHIPPED, name)) this.#own.set(name, area);
      }
      this.#offer();
      // If the server cannot keep them, kernels know workbench's own.
      publish([...this.#own.keys()].sort()).catch(() => undefined);
    };
    if (!settings) return;
    settings.changed.connect(read);
    read();
  }

  /**
   * Opens the layout that the address names, otherwise that of the settings if no pane came back. Waits for something
   * to open panes `beside`: a notebook that came later would become a tab among them.
   */
  openAtStart(isEmpty: boolean, beside: Promise<void>): void {
    const open = (name: unknown) =>
      void this.#attempt(async () => {
        await beside;
        await this.open(name);
      });
    const address = new URL(location.href);
    const asked = address.searchParams.get(PARAMETER);
    if (asked !== null) {
      address.searchParams.delete(PARAMETER); // once, so that later changes come back after a reload
      history.replaceState(history.state, "", address);
      open(asked);
      return;
    }
    const wanted = this.#settings?.composite["layoutAtStart"];
    if (wanted && isEmpty) open(wanted);
  }

  /** The layout with this name, or one in the form of the settings; null if there is none. */
  find(wanted: unknown): Area | null {
    if (typeof wanted !== "string") return readArea(wanted);
    if (Object.hasOwn(SHIPPED, wanted)) return SHIPPED[wanted as keyof typeof SHIPPED];
    return this.#own.get(wanted) ?? null;
  }

  /** Opens a layout; without a name, asks which. */
  async open(name: unknown): Promise<void> {
    const { trans } = this.services;
    const chosen = name === undefined ? await this.#ask(trans.__("Open a layout"), this.names) : textOf(name);
    if (chosen === null) return;
    const area = this.find(chosen);
    if (!area) {
      throw new Error(
        trans.__("There is no layout “%1”. There are: %2", chosen.slice(0, 80), this.names.join(", ")),
      );
    }
    this.services.arrange(area);
  }

  async #save(name: unknown): Promise<void> {
    const { trans } = this.services;
    const area = this.services.current();
    if (!area) throw new Error(trans.__("Open some panes first: a layout is where they lie."));
    if (!this.#settings)
      throw new Error(trans.__("There are no settings here in which a layout could be kept."));
    const title = trans.__("Save the layout of panes");
    const answer = name ?? (await InputDialog.getText({ title, label: trans.__("Name") })).value;
    if (answer === null) return;
    const chosen = textOf(answer).trim();
    if (!NAME.test(chosen)) {
      throw new Error(trans.__("A name has up to 40 letters, digits, spaces, dots, dashes and underscores."));
    }
    if (Object.hasOwn(SHIPPED, chosen)) {
      throw new Error(trans.__("“%1” comes with workbench: take another name.", chosen));
    }
    await this.#keep(new Map(this.#own).set(chosen, area));
  }

  async #delete(name: unknown): Promise<void> {
    const { trans } = this.services;
    const chosen = name ?? (await this.#ask(trans.__("Delete a saved layout"), [...this.#own.keys()].sort()));
    if (chosen === null) return;
    const left = new Map(this.#own);
    if (!left.delete(textOf(chosen))) {
      throw new Error(trans.__("There is no saved layout “%1”.", textOf(chosen).slice(0, 80)));
    }
    await this.#keep(left);
  }

  async #keep(layouts: Map<string, Area>): Promise<void> {
    await this.#settings?.set("layouts", Object.fromEntries(layouts));
  }

  async #ask(title: string, items: readonly string[]): Promise<string | null> {
    const answer = await InputDialog.getItem({ title, items });
    return answer.button.accept ? answer.value : null;
  }

  async #attempt(what: () => Promise<void>): Promise<void> {
    try {
      await what();
    } catch (error) {
      await showErrorMessage(
        this.services.trans.__("Workbench"),
        error instanceof Error ? error.message : String(error),
      );
    }
  }

  /** Adds a command to the palette for each name, and informs those who show the names. */
  #offer(): void {
    const { palette, category } = this.services;
    for (const item of this.#items) item.dispose();
    const command = LAYOUT_COMMANDS.open;
    this.#items = this.names.flatMap((name) => palette?.addItem({ command, category, args: { name } }) ?? []);
    for (const changed of this.#listeners) changed();
  }
}
