// Several pages in one place, one of them at a time.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export interface Page {
  name: string;
  /** Says more of it. */
  title: string;
  /** Behind the name, such as a count; or "". */
  mark?: string;
  draw(): ComponentChildren;
}

/** At least one page; which one is open stays so while pages come and go. */
export function Tabs({ label, pages }: { label: string; pages: readonly Page[] }) {
  const [chosen, setChosen] = useState("");
  const index = Math.max(
    0,
    pages.findIndex((page) => page.name === chosen),
  );
  const page = pages[index]!;
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (index + step + pages.length) % pages.length;
    setChosen(pages[next]!.name);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <>
      <div class="wb-tabs" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {pages.map((one) => (
          <button
            key={one.name}
            type="button"
            role="tab"
            aria-selected={one === page}
            tabIndex={one === page ? 0 : -1}
            title={one.title}
            onClick={() => setChosen(one.name)}
          >
            {one.name}
            {one.mark && ` ${one.mark}`}
          </button>
        ))}
      </div>
      <div role="tabpanel" aria-label={page.title} key={page.name}>
        {page.draw()}
      </div>
    </>
  );
}
