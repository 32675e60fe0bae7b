// The elements that views are full of.
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";

/** A button that sends no form, wherever a page puts it. */
export function Button(props: ButtonHTMLAttributes) {
  return <button type="button" {...props} />;
}

/** What is said beside the main thing. */
export function Quiet({ children }: { children: ComponentChildren }) {
  return <span class="wb-quiet">{children}</span>;
}
