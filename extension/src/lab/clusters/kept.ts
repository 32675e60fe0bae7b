// What the panel remembers for a user between pages: collapsed sections, and the workers started last.
import type { IStateDB } from "@jupyterlab/statedb";
import { AS_USUAL, readOptions, type WorkerOptions } from "./worker_options";

const KEY = "workbench-lab:panel";

export class Kept {
  #folded: ReadonlySet<string> = new Set();
  #options: WorkerOptions = AS_USUAL;

  /** Reads the stored state, and then calls `read`. Ignores what another version wrote. */
  constructor(
    private readonly state: IStateDB | null,
    read: () => void,
  ) {
    void state
      ?.fetch(KEY)
      .then((kept) => {
        const { folded, options } = (kept ?? {}) as { folded?: unknown; options?: unknown };
        if (Array.isArray(folded)) this.#folded = new Set(folded.filter((name) => typeof name === "string"));
        this.#options = readOptions(options);
        read();
      })
      .catch(() => undefined);
  }

  /** The options of the workers that were started last. */
  get options(): WorkerOptions {
    return this.#options;
  }

  isFolded(section: string): boolean {
    return this.#folded.has(section);
  }

  fold(section: string, folded: boolean): void {
    const others = [...this.#folded].filter((name) => name !== section);
    this.#folded = new Set(folded ? [...others, section] : others);
    this.#save();
  }

  keepOptions(options: WorkerOptions): void {
    this.#options = options;
    this.#save();
  }

  #save(): void {
    void this.state?.save(KEY, { folded: [...this.#folded], options: this.#options });
  }
}
