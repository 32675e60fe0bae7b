// A button that puts code into a notebook: whatever surrounds the view does that, as JupyterLab does.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { INSERT } from "../view";
import { Button } from "../parts/small";

interface Props {
  code: string;
  label: string;
  class?: string;
  /** What is shown where nothing around the view takes the code. */
  otherwise: ComponentChildren;
}

export function Insert({ code, label, class: look, otherwise }: Props) {
  const [isLeft, setLeft] = useState(false);
  const insert = (button: HTMLElement) => {
    const options = { detail: { code }, bubbles: true, composed: true, cancelable: true };
    setLeft(button.dispatchEvent(new CustomEvent(INSERT, options)));
  };
  return (
    <>
      <Button class={look} onClick={(event) => insert(event.currentTarget)}>
        {label}
      </Button>
      <span role="status">{isLeft && otherwise}</span>
    </>
  );
}
