// Keeps the focus where buttons take the place of others.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** All that can be seen: not what is folded. */
const BUTTONS = "button:not(details:not([open]) *), summary";

/** Where what has the focus in here goes away as this is drawn again, the last button in here gets it. */
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
