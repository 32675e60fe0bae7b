// Elements that all views use, and what their key handlers share.
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import { counted } from "../format";
import { INSERT } from "../view";

/** A button that sends no form, wherever a page puts it. */
export function Button(props: ButtonHTMLAttributes) {
  return <button type="button" {...props} />;
}

/** Whether there may be a notebook around the views. */
export const HasNotebook = createContext(true);

interface InsertProps {
  code: string;
  label: string;
  class?: string;
  /** What is shown where no notebook is around the view, or nothing takes the code. */
  otherwise: ComponentChildren;
}

/** A button that puts code into a notebook: the surroundings of the view do that, as JupyterLab does. */
export function Insert({ code, label, class: look, otherwise }: InsertProps) {
  const [isLeft, setLeft] = useState(false);
  if (!useContext(HasNotebook)) return otherwise;
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

/** A statement in place of a view, or below a part of it. */
export function Note({ children }: { children: ComponentChildren }) {
  return <p class="wb-quiet">{children}</p>;
}

/** How many more there are than are drawn. */
export function More({ hidden, noun }: { hidden: number; noun: string }) {
  return hidden > 0 ? <Note>{counted(hidden, `more ${noun}`)}: the table has them</Note> : null;
}

/** A fact with its name, in a list of them. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A remark beside the main thing. */
export function Quiet({ children }: { children: ComponentChildren }) {
  return <span class="wb-quiet">{children}</span>;
}

/** Handles a key, and keeps it from the notebook, which has shortcuts for many. */
export function take(event: KeyboardEvent): void {
  event.preventDefault();
  event.stopPropagation();
}

/** Whether the focus is in an element, including in a shadow tree. */
export function hasFocus(element: Element | null): boolean {
  return element?.contains((element.getRootNode() as Document).activeElement) === true;
}
