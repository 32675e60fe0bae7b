// The elements that views are full of, and what all of their handlers of keys do.
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { counted } from "../format";

/** A button that sends no form, wherever a page puts it. */
export function Button(props: ButtonHTMLAttributes) {
  return <button type="button" {...props} />;
}

/** What is said in place of a view or below a part of it. */
export function Note({ children }: { children: ComponentChildren }) {
  return <p class="wb-quiet">{children}</p>;
}

/** How many more there are than are drawn, if there are. */
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

/** What is said beside the main thing. */
export function Quiet({ children }: { children: ComponentChildren }) {
  return <span class="wb-quiet">{children}</span>;
}

/** Takes a key: notebooks have shortcuts of their own for many. */
export function take(event: KeyboardEvent): void {
  event.preventDefault();
  event.stopPropagation();
}
