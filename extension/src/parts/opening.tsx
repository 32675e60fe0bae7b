// The link from one view to another: the surroundings of a view may open it, as JupyterLab does; otherwise it names the
// code.
import type { ComponentChildren, RefObject } from "preact";
import { useState } from "preact/hooks";
import { OPEN, type ViewName } from "../view";

/** The code that shows a view that cannot be opened from here. */
const CALLS: Partial<Record<ViewName, string>> = {
  values: "wb.inspect(value)",
  input: "dataset.explain()",
  dataset_sharding: "wb.explain_sharding(dataset)",
  devices: "wb.devices()",
  topology: "wb.topology()",
};

export type Open = (view: ViewName) => void;

/**
 * A function that opens views from the element, and what to say about the last one; `inside` may show it in the view
 * itself.
 */
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
