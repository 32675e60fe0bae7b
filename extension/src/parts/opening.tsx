// The way from one view to another: whatever surrounds a view may open it, as JupyterLab does; else it says what shows it.
import type { ComponentChildren, RefObject } from "preact";
import { useState } from "preact/hooks";
import { OPEN, type ViewName } from "../view";

/** What shows a view that cannot be opened from here. */
const CALLS: Partial<Record<ViewName, string>> = {
  values: "wb.inspect(value)",
  input: "dataset.explain()",
  dataset_sharding: "wb.explain_sharding(dataset)",
  devices: "wb.devices()",
  topology: "wb.topology()",
};

export type Open = (view: ViewName) => void;

/** What opens views from the element, and what is to be said of the last one; `inside` may show it in the view itself. */
export function useOpening(
  root: RefObject<HTMLElement>,
  inside?: (view: ViewName) => boolean,
): [Open, ComponentChildren] {
  const [said, setSaid] = useState("");
  const open = (view: ViewName) => {
    const detail = { view };
    setSaid("");
    if (
      !root.current?.dispatchEvent(
        new CustomEvent(OPEN, { detail, bubbles: true, composed: true, cancelable: true }),
      )
    )
      return;
    if (!inside?.(view)) setSaid(`${CALLS[view] ?? "wb.collectives()"} shows it`);
  };
  return [
    open,
    said && (
      <p class="wb-quiet" role="status">
        {said}
      </p>
    ),
  ];
}
