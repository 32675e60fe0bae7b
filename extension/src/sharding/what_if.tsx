// What another layout of a dataset would do.
import { useRef, useState } from "preact/hooks";
import type { DatasetSharding } from "../models";
import { Quiet } from "../parts/small";
import type { Context } from "../view";
import { usualOf } from "./columns";

const PAUSE_MS = 150;
const POLICIES = ["AUTO", "FILE", "DATA", "HINT", "OFF"];

/** What another batch size, other replicas or another policy would do, where someone answers. */
export function WhatIf({ model, context }: { model: DatasetSharding; context: Context }) {
  const ask = context.ask;
  const asked = model.policy.split("→")[0]!;
  const { batch_size, readers, together = readers } = model;
  // If the dataset does not describe it, that of the fullest step.
  const batch = batch_size > 0 ? batch_size : usualOf(together.at(-1));
  const waiting = useRef(0);
  const [draft, setDraft] = useState({
    batch_size: batch,
    hosts: model.hosts,
    replicas_per_host: model.replicas_per_host,
    policy: POLICIES.includes(asked) ? asked : "AUTO",
  });
  if (!ask) return null;
  const number = (name: "batch_size" | "hosts" | "replicas_per_host", label: string, most: number) => (
    <label>
      {label}{" "}
      <input
        type="range"
        min={1}
        max={most}
        value={draft[name]}
        onInput={(event) => change({ [name]: Number(event.currentTarget.value) })}
      />{" "}
      {draft[name]}
    </label>
  );
  const change = (part: Partial<typeof draft>) => {
    const next = { ...draft, ...part };
    setDraft(next);
    clearTimeout(waiting.current);
    // While a slider moves, nobody waits for the answers.
    waiting.current = setTimeout(() => ask({ kind: "what_if", ...next }), PAUSE_MS) as unknown as number;
  };
  return (
    <fieldset class="wb-form">
      <Quiet>What if</Quiet>
      {number("batch_size", "global batch", Math.max(64, 2 * batch))}
      {number("hosts", "hosts", 8)}
      {number("replicas_per_host", "replicas per host", 8)}
      <label>
        policy{" "}
        <select value={draft.policy} onChange={(event) => change({ policy: event.currentTarget.value })}>
          {POLICIES.map((policy) => (
            <option key={policy}>{policy}</option>
          ))}
        </select>
      </label>
    </fieldset>
  );
}
