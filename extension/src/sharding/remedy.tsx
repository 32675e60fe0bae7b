// What helps replicas without data, as code: whatever surrounds the view puts it into a notebook, as JupyterLab does; else it is shown.
import { useState } from "preact/hooks";
import type { DatasetSharding } from "../models";
import { Button } from "../parts/small";
import { INSERT } from "../view";

export function Remedy({ model: { remedy, remedy_code: code } }: { model: DatasetSharding }) {
  const [shown, setShown] = useState(false);
  if (!remedy) return null;
  const insert = (button: HTMLElement) => {
    const options = { detail: { code }, bubbles: true, composed: true, cancelable: true };
    setShown(button.dispatchEvent(new CustomEvent(INSERT, options)));
  };
  return (
    <>
      <Button class="wb-link" onClick={(event) => insert(event.currentTarget)}>
        {remedy} →
      </Button>
      <span role="status">{shown && <code class="wb-code">{code}</code>}</span>
    </>
  );
}
