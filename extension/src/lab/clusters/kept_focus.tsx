// Keeps the focus when buttons replace others.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** The visible parts only, not collapsed ones. */
const BUTTONS = "button:not(details:not([open]) *), summary";

/** If a redraw removes the focused element in here, the last button in here gets the focus. */
export function KeptFocus({ children }: { children: ComponentChildren }) {
  const box = useRef<HTMLSpanElement>(null);
  const had = box.current?.contains(document.activeElement) ?? false; // before anything is drawn
  useLayoutEffect(() => {
    const buttons = box.current?.querySelectorAll<HTMLElement>(BUTTONS);
    if (had && !box.current?.contains(document.activeElement)) buttons?.[buttons.length - 1]?.focus();
  });
  return (
    <span class="wb-panel-kept" ref={box}>
      {children}
    </span>
  );
}
