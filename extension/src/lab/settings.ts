// What a user has set for workbench on JupyterLab's settings page: `schema/plugin.json`, whose defaults are here.
import type { ISettingRegistry, ISettings as Loaded } from "@jupyterlab/settingregistry";

/** The settings have this plugin's name, under which JupyterLab keeps the user's values. */
export const SETTINGS = "workbench-lab:plugin";

export class Settings {
  #loaded: Loaded | null = null;
  #listeners = new Set<() => void>();
  /** When they are read; until then, and without settings, the defaults apply. */
  readonly ready: Promise<void>;

  constructor(registry: ISettingRegistry | null) {
    const use = (loaded: Loaded) => {
      this.#loaded = loaded;
      loaded.changed.connect(() => this.#changed());
      this.#changed();
    };
    this.ready = registry ? registry.load(SETTINGS).then(use, () => undefined) : Promise.resolve();
  }

  /** Where layouts are kept; null if that is impossible. */
  get stored(): Loaded | null {
    return this.#loaded;
  }

  get openOnFirstCluster(): readonly string[] {
    const given = this.#get("openOnFirstCluster");
    return Array.isArray(given) ? given.map(String) : [];
  }

  get notebookLayouts(): boolean {
    return this.#get("notebookLayouts") !== false;
  }

  /** Whether a pane that a user opens follows the newest cluster instead of that of the notebook in front. */
  get followsNewest(): boolean {
    return this.#get("newPanesFollow") === "newest";
  }

  get statusBar(): boolean {
    return this.#get("statusBar") !== false;
  }

  get connectNewNotebooks(): boolean {
    return this.#get("connectNewNotebooks") === true;
  }

  /** "reduced", or "system" for the browser's preference. */
  get motion(): string {
    return this.#get("motion") === "reduced" ? "reduced" : "system";
  }

  /** Worker options by the names that a user gave them, as stored. */
  get workerPresets(): Readonly<Record<string, unknown>> {
    const given = this.#get("workerPresets");
    return typeof given === "object" && given !== null ? { ...given } : {};
  }

  /** Whether headings, the timing table and facts use the field's terms instead of plain words. */
  get fieldTerms(): boolean {
    return this.#get("fieldTerms") === true;
  }

  get repaintsPerSecond(): number {
    const given = Number(this.#get("repaintsPerSecond"));
    return given >= 1 && given <= 10 ? given : 10;
  }

  /** Calls `changed` after each change, and after the first reading. */
  listen(changed: () => void, signal = new AbortController().signal): void {
    this.#listeners.add(changed);
    signal.addEventListener("abort", () => this.#listeners.delete(changed), { once: true });
  }

  #get(key: string): unknown {
    return this.#loaded?.composite[key];
  }

  #changed(): void {
    for (const changed of [...this.#listeners]) changed();
  }
}
