// Worker options that a user has named; the settings keep them beside workbench's own.
import { InputDialog } from "@jupyterlab/apputils";
import type { TranslationBundle } from "@jupyterlab/translation";
import type { Settings } from "../settings";
import { presetsOf, understood, type WorkerOptions } from "./worker_options";

export type Preset = readonly [name: string, options: WorkerOptions];

const KEY = "workerPresets";
const LONGEST_NAME = 40;

export class Presets {
  constructor(
    private readonly settings: Settings,
    private readonly trans: TranslationBundle,
  ) {}

  /** The user's presets by name; ignores invalid ones. */
  get own(): Preset[] {
    return Object.entries(this.settings.workerPresets).flatMap(([name, kept]) => {
      const options = understood(kept);
      return options ? [[name, options] as const] : [];
    });
  }

  /** Asks for a name and stores the options under it, replacing any with that name. */
  async save(options: WorkerOptions): Promise<void> {
    const { trans } = this;
    const title = trans.__("Save these options as a preset");
    const { value } = await InputDialog.getText({ title, label: trans.__("Name") });
    const name = value?.trim().slice(0, LONGEST_NAME);
    if (!name) return;
    if (presetsOf(trans).some(([shipped]) => shipped === name))
      throw new Error(trans.__("“%1” comes with workbench: take another name.", name));
    await this.#keep({ ...this.settings.workerPresets, [name]: options });
  }

  async delete(name: string): Promise<void> {
    const { [name]: _, ...others } = this.settings.workerPresets;
    await this.#keep(others);
  }

  async #keep(presets: Record<string, unknown>): Promise<void> {
    const { stored } = this.settings;
    if (!stored)
      throw new Error(this.trans.__("There are no settings here in which a preset could be kept."));
    await stored.set(KEY, presets);
  }
}
