// A collapsible section of the left panel.
import type { ComponentChildren } from "preact";
import type { Kept } from "./kept";

interface Props {
  /** Its name in the stored state, the same in all languages. */
  name: string;
  title: string;
  /** The number of items in it, which is hidden if there are none. */
  count?: number;
  kept: Kept;
  redraw(): void;
  children: ComponentChildren;
}

export function Section({ name, title, count = 0, kept, redraw, children }: Props) {
  const folded = kept.isFolded(name);
  const fold = () => {
    kept.fold(name, !folded);
    redraw();
  };
  return (
    <section aria-label={title}>
      <h2>
        <button type="button" class="wb-panel-fold" aria-expanded={!folded} onClick={fold}>
          {title}
        </button>
        {count > 0 && <span class="wb-panel-count">{count}</span>}
      </h2>
      {!folded && children}
    </section>
  );
}
