// What a person has set for workbench on JupyterLab's page of settings: `schema/plugin.json`, of which this has the defaults.
import type { ISettingRegistry, ISettings as Loaded } from "@jupyterlab/settingregistry";

/** The settings have the name of this plugin, which keeps what people have set under it. */
export const SETTINGS = "workbench-lab:plugin";

export class Settings {
  #loaded: Loaded | null = null;
  #listeners = new Set<() => void>();
  /** When they are read; until then, and where there are none, all is as it is by default. */
  readonly ready: Promise<void>;

  constructor(registry: ISettingRegistry | null) {
    const use = (loaded: Loaded) => {
      this.#loaded = loaded;
      loaded.changed.connect(() => this.#changed());
      this.#changed();
    };
    this.ready = registry ? registry.load(SETTINGS).then(use, () => undefined) : Promise.resolve();
  }

  /** Where layouts are kept; null where nothing can be. */
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

  /** Whether a pane that a person opens follows the newest cluster, not that of the notebook in front. */
  get followsNewest(): boolean {
    return this.#get("newPanesFollow") === "newest";
  }

  get statusBar(): boolean {
    return this.#get("statusBar") !== false;
  }

  get connectNewNotebooks(): boolean {
    return this.#get("connectNewNotebooks") === true;
  }

  /** "reduced", or "system": what the browser says. */
  get motion(): string {
    return this.#get("motion") === "reduced" ? "reduced" : "system";
  }

  /** Options of workers by the names that a person gave them, as they were kept. */
  get workerPresets(): Readonly<Record<string, unknown>> {
    const given = this.#get("workerPresets");
    return typeof given === "object" && given !== null ? { ...given } : {};
  }

  /** Whether headings, the timing table and facts say the field's terms, not plain words. */
  get fieldTerms(): boolean {
    return this.#get("fieldTerms") === true;
  }

  get repaintsPerSecond(): number {
    const given = Number(this.#get("repaintsPerSecond"));
    return given >= 1 && given <= 10 ? given : 10;
  }

  /** Calls `changed` after each change, and when they are read first. */
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
