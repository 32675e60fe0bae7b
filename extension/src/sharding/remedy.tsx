// What helps replicas without data, as code: whatever surrounds the view puts it into a notebook, as JupyterLab does; else it is shown.
import { useState } from "preact/hooks";
import type { DatasetSharding } from "../models";
import { Button } from "../parts/small";
import { INSERT } from "../view";

/** By its name in the model. The code is here, not there: a saved notebook of a stranger has a model, too. */
const REMEDIES: Record<string, { label: string; code: string }> = {
  data_policy: {
    label: "Use policy DATA",
    code: `options = wb.data.Options()
options.experimental_distribute.auto_shard_policy = wb.data.AutoShardPolicy.DATA
dataset = dataset.with_options(options)`,
  },
};

export function Remedy({ model: { remedy = "" } }: { model: DatasetSharding }) {
  const [shown, setShown] = useState(false);
  if (!Object.hasOwn(REMEDIES, remedy)) return null;
  const { label, code } = REMEDIES[remedy]!;
  const insert = (button: HTMLElement) => {
    const options = { detail: { code }, bubbles: true, composed: true, cancelable: true };
    setShown(button.dispatchEvent(new CustomEvent(INSERT, options)));
  };
  return (
    <>
      <Button class="wb-link" onClick={(event) => insert(event.currentTarget)}>
        {label} →
      </Button>
      <span role="status">{shown && <code class="wb-code">{code}</code>}</span>
    </>
  );
}
