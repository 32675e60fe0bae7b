// The sweep that a user has chosen as baseline: a ghost behind every later one on the page, even after a reload.
import type { IStateDB } from "@jupyterlab/statedb";
import type { Sweep } from "../../models";
import { fits } from "../saved/saved_model";
import type { AnyModel } from "../server/messages";

const STATE = "workbench-lab:baseline";

interface Baseline {
  name: string;
  sweeps: readonly Sweep[];
}

/** The sweeps in a model, of a cluster or of a recorded run. */
export function sweepsOf(model: AnyModel | null): readonly Sweep[] {
  if (!model) return [];
  if ("sweeps" in model) return model.sweeps;
  return "collectives" in model ? model.collectives.sweeps : [];
}

export class Baselines {
  #kept: Baseline | null = null;
  #listeners = new Set<() => void>();

  constructor(private readonly state: IStateDB | null) {
    const take = (found: unknown) => {
      if (this.#kept || !isBaseline(found)) return;
      this.#kept = found;
      this.#changed();
    };
    state?.fetch(STATE).then(take, () => undefined);
  }

  get isEmpty(): boolean {
    return this.#kept === null;
  }

  listen(changed: () => void, signal: AbortSignal): void {
    this.#listeners.add(changed);
    signal.addEventListener("abort", () => this.#listeners.delete(changed), { once: true });
  }

  /** Stores these in place of the earlier ones; null removes them. */
  async keep(baseline: Baseline | null): Promise<void> {
    this.#kept = baseline;
    this.#changed();
    await this.state?.save(STATE, baseline);
  }

  /**
   * The model with the stored baselines of its sweeps, by operation and type, in the form of `wb.collectives.sweep`.
   */
  under<M extends AnyModel>(model: M): M {
    if ("sweeps" in model) return { ...model, sweeps: model.sweeps.map((sweep) => this.#over(sweep)) };
    if (!("collectives" in model)) return model;
    return { ...model, collectives: this.under(model.collectives) };
  }

  #over(sweep: Sweep): Sweep {
    const kept = this.#kept?.sweeps.find((one) => one.op === sweep.op && one.dtype === sweep.dtype);
    if (!this.#kept || !kept) return sweep;
    const { n, transport, points } = kept;
    return { ...sweep, baseline: { name: this.#kept.name, n, transport, points } };
  }

  #changed(): void {
    for (const changed of [...this.#listeners]) changed();
  }
}

/** Whether it is valid, because the state of a page comes from a file. */
function isBaseline(found: unknown): found is Baseline {
  if (typeof found !== "object" || found === null || !("name" in found) || !("sweeps" in found)) return false;
  return typeof found.name === "string" && fits(found.sweeps, { list: { object: "Sweep" } });
}
