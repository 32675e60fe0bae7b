// The options of workers, as workbench/server/worker_options.py reads them.
import type { TranslationBundle } from "@jupyterlab/translation";

/** The most workers that a cluster of the panel can have. */
export const MAX_REPLICAS = 256;

export const KINDS = ["cpu", "gpu", "tpu"] as const;
export type Kind = (typeof KINDS)[number];

export interface WorkerOptions {
  replicas: number;
  /** The maximum while a notebook uses them; 0 for a fixed number. */
  maximum: number;
  kind: Kind;
  threads: boolean;
  /** For each worker process, such as "2 GiB"; "" divides the machine's memory among them. */
  memory_limit: string;
}

export const AS_USUAL: WorkerOptions = {
  replicas: 2,
  maximum: 0,
  kind: "cpu",
  threads: false,
  memory_limit: "",
};

/** What replicas run on, in words. */
export function kindName(kind: string, trans: TranslationBundle): string {
  const names = new Map([
    ["cpu", trans.__("CPU")],
    ["gpu", trans.__("GPU")],
    ["tpu", trans.__("TPU")],
  ]);
  return names.get(kind) ?? kind;
}

/** Ready-made options, as a first try of each kind. */
export function presetsOf(trans: TranslationBundle): readonly (readonly [string, WorkerOptions])[] {
  return [
    [trans.__("2 processes"), AS_USUAL],
    [trans.__("4 threads"), { ...AS_USUAL, replicas: 4, threads: true }],
    [trans.__("1 to 4 processes"), { ...AS_USUAL, replicas: 1, maximum: 4 }],
    [trans.__("1 GPU"), { ...AS_USUAL, replicas: 1, kind: "gpu" }],
    [trans.__("8 TPU cores"), { ...AS_USUAL, replicas: 8, kind: "tpu" }],
  ];
}

/** Whether the number of replicas can change: each then has its own process. */
export function isResizable({ kind, threads }: Pick<WorkerOptions, "threads"> & { kind: string }): boolean {
  return kind !== "tpu" && !threads;
}

/** The same, without options that its kind does not have. */
export function consistent(options: WorkerOptions): WorkerOptions {
  const threads = options.threads && options.kind === "cpu";
  const maximum = isResizable({ ...options, threads }) ? options.maximum : 0;
  return { ...options, threads, maximum };
}

/** The stored options, or the usual ones if these are invalid. */
export function readOptions(kept: unknown): WorkerOptions {
  return understood(kept) ?? AS_USUAL;
}

/** The stored options, or null if they are invalid; the server refuses names that it does not know. */
export function understood(kept: unknown): WorkerOptions | null {
  const given: Record<string, unknown> = typeof kept === "object" && kept !== null ? { ...kept } : {};
  const found = Object.fromEntries(
    Object.entries(AS_USUAL).map(([name, usual]) => [name, given[name] ?? usual]),
  ) as unknown as WorkerOptions;
  const fits =
    Object.entries(AS_USUAL).every(
      ([name, usual]) => typeof found[name as keyof WorkerOptions] === typeof usual,
    ) &&
    KINDS.includes(found.kind) &&
    isCount(found.replicas) &&
    (found.maximum === 0 || (isCount(found.maximum) && found.maximum >= found.replicas));
  return fits ? found : null;
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= MAX_REPLICAS;
}
