// The elements that views are full of.
import type { ComponentChildren, JSX } from "preact";

/** A button that sends no form, wherever a page puts it. */
export function Button(props: JSX.ButtonHTMLAttributes<HTMLButtonElement>) {
  return <button type="button" {...props} />;
}

/** What is said beside the main thing. */
export function Quiet({ children }: { children: ComponentChildren }) {
  return <span class="wb-quiet">{children}</span>;
}
