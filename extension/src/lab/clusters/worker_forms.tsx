// The forms of the left panel that start workers and change their number.
import type { TranslationBundle } from "@jupyterlab/translation";
import { useState } from "preact/hooks";
import type { ClusterInfo, PoolSummary } from "../server/messages";
import type { Kept } from "./kept";
import { KeptFocus } from "./kept_focus";
import type { Presets } from "./presets";
import {
  consistent,
  isResizable,
  type Kind,
  kindName,
  KINDS,
  MAX_REPLICAS,
  presetsOf,
  type WorkerOptions,
} from "./worker_options";

interface FormProps {
  trans: TranslationBundle;
  attempt(what: () => Promise<unknown>): void;
}

interface StartProps extends FormProps {
  kept: Kept;
  presets: Presets;
  start(options: WorkerOptions): Promise<unknown>;
}

export function StartForm({ kept, presets, start, trans, attempt }: StartProps) {
  const [changed, setChanged] = useState<WorkerOptions | undefined>();
  const [starting, setStarting] = useState(false);
  const options = changed ?? kept.options;
  const { own } = presets;
  const all = [...presetsOf(trans), ...own];
  const set = (part: Partial<WorkerOptions>) => setChanged(consistent({ ...options, ...part }));
  const submit = (event: Event) => {
    event.preventDefault();
    if (starting) return;
    setStarting(true);
    kept.keepOptions(options);
    attempt(() => start(options).finally(() => setStarting(false)));
  };
  const same = all.map(([, preset]) => JSON.stringify(preset) === JSON.stringify(options));
  const chosen = same.lastIndexOf(true); // the user's own, where both kinds have the same name
  const mine = own[chosen - (all.length - own.length)]?.[0];
  return (
    <form class="wb-panel-start" onSubmit={submit}>
      <label>
        {trans.__("Replicas")}{" "}
        <NumberInput
          value={options.replicas}
          min={1}
          onChange={(replicas) => set({ replicas, maximum: atLeast(replicas, options.maximum) })}
        />
      </label>
      <button type="submit" aria-disabled={starting}>
        {starting ? trans.__("Starting …") : trans.__("Start workers")}
      </button>
      <details>
        <summary>{trans.__("Options: %1", described(options, trans))}</summary>
        <label>
          {trans.__("Preset")}
          <select value={chosen} onChange={(event) => set(all[Number(event.currentTarget.value)]?.[1] ?? {})}>
            {chosen < 0 && <option value={-1}>{trans.__("as below")}</option>}
            {all.map(([name], index) => (
              <option key={name} value={index}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          {trans.__("Run on")}
          <select
            value={options.kind}
            onChange={(event) => set({ kind: event.currentTarget.value as Kind })}
            title={trans.__("Without a TPU, the CPU emulates its cores.")}
          >
            {KINDS.map((kind) => (
              <option key={kind} value={kind}>
                {kindName(kind, trans)}
              </option>
            ))}
          </select>
        </label>
        <label>
          {trans.__("Processes")}
          <select
            value={options.threads || options.kind === "tpu" ? "one" : "each"}
            disabled={options.kind !== "cpu"}
            onChange={(event) => set({ threads: event.currentTarget.value === "one" })}
          >
            <option value="each">{trans.__("one each")}</option>
            <option value="one">{trans.__("one for all, with threads")}</option>
          </select>
        </label>
        <label title={whileUsed(trans)}>
          {trans.__("At most, while used")}
          <NumberInput
            value={options.maximum}
            min={options.replicas}
            disabled={!isResizable(options)}
            optional
            placeholder={trans.__("same")}
            onChange={(maximum) => set({ maximum })}
          />
        </label>
        <label>
          {trans.__("Memory limit of a process")}
          <input
            type="text"
            value={options.memory_limit}
            placeholder={trans.__("its share")}
            title={trans.__("Such as 2 GiB. Empty: its share of the machine's memory.")}
            onInput={(event) => set({ memory_limit: event.currentTarget.value.trim() })}
          />
        </label>
        <KeptFocus>
          <button type="button" onClick={() => attempt(() => presets.save(options))}>
            {trans.__("Save as preset …")}
          </button>
          {mine && (
            <button type="button" onClick={() => attempt(() => presets.delete(mine))}>
              {trans.__("Delete preset “%1”", mine)}
            </button>
          )}
        </KeptFocus>
      </details>
    </form>
  );
}

interface ScaleProps extends FormProps {
  cluster: ClusterInfo;
  pool: PoolSummary;
  scale(cluster: ClusterInfo, replicas: number, maximum: number): Promise<unknown>;
}

/** The requested number of workers; while they start, with a button that cancels. */
export function ScaleForm({ cluster, pool, scale, trans, attempt }: ScaleProps) {
  const [replicas, setReplicas] = useState(pool.minimum);
  const [maximum, setMaximum] = useState(pool.maximum);
  const named = (action: string) => `${action}: ${cluster.name}`;
  const submit = (event: Event) => {
    event.preventDefault();
    attempt(() => scale(cluster, replicas, maximum));
  };
  if (pool.scaling)
    return (
      <span class="wb-panel-scale">
        {trans.__("Scaling to %1 …", cluster.summary.replicas)}
        <button
          type="button"
          title={trans.__("Go back to %1", pool.settled)}
          aria-label={named(trans.__("Cancel"))}
          onClick={() => attempt(() => scale(cluster, pool.settled, 0))}
        >
          {trans.__("Cancel")}
        </button>
      </span>
    );
  return (
    <form class="wb-panel-scale" onSubmit={submit}>
      <NumberInput
        value={replicas}
        min={1}
        label={named(trans.__("Replicas"))}
        onChange={(wanted) => {
          setReplicas(wanted);
          setMaximum(atLeast(wanted, maximum));
        }}
      />
      <label title={whileUsed(trans)}>
        {trans.__("to")}{" "}
        <NumberInput
          value={maximum}
          min={replicas}
          optional
          placeholder={trans.__("same")}
          label={named(trans.__("At most, while used"))}
          onChange={setMaximum}
        />
      </label>
      <button type="submit" aria-label={named(trans.__("Scale"))}>
        {trans.__("Scale")}
      </button>
    </form>
  );
}

/** The same maximum, but not below the number of replicas; 0 if that number is fixed. */
function atLeast(replicas: number, maximum: number): number {
  return maximum && Math.max(replicas, maximum);
}

function whileUsed(trans: TranslationBundle): string {
  return trans.__(
    "With a number here, workers come when a notebook connects, up to this number, and leave half a minute after it has gone.",
  );
}

/** Options in a few words. */
export function described(
  { kind, threads, maximum }: Pick<WorkerOptions, "threads" | "maximum"> & { kind: string },
  trans: TranslationBundle,
): string {
  const parts = [kindName(kind, trans)];
  if (threads) parts.push(trans.__("threads of one process"));
  if (maximum) parts.push(trans.__("up to %1 while used", maximum));
  return parts.join(", ");
}

interface NumberProps {
  value: number;
  min: number;
  label?: string;
  /** An empty field counts as 0. */
  optional?: boolean;
  /** Shown in an empty field. */
  placeholder?: string;
  disabled?: boolean;
  onChange(value: number): void;
}

/** A whole number of replicas. The form cannot be submitted before the input is one. */
function NumberInput(props: NumberProps) {
  const { value, min, label, placeholder, optional = false, disabled = false, onChange } = props;
  const [typed, setTyped] = useState<string | undefined>();
  const shown = optional && value === 0 ? "" : String(value);
  return (
    <input
      type="number"
      required={!optional}
      disabled={disabled}
      min={min}
      max={MAX_REPLICAS}
      value={typed !== undefined && Number(typed) === value ? typed : shown}
      aria-label={label}
      placeholder={placeholder}
      onInput={(event) => {
        setTyped(event.currentTarget.value);
        onChange(Number(event.currentTarget.value));
      }}
    />
  );
}
