// Everything about collectives in one view: what is stuck on top, then one of the others at a time.
import { useState } from "preact/hooks";
import type { Collectives, Models } from "../models";
import type { Context, View } from "../view";
import { collectiveTable } from "./collective_table";
import { heatMap } from "./heat_map";
import { lanes } from "./lanes";
import { log } from "./log";
import { Banners } from "./stuck";
import { sweep } from "./sweep";

const PAGES: { name: string; view: View<Collectives> }[] = [
  { name: "Table", view: collectiveTable },
  { name: "Lanes", view: lanes },
  { name: "Lateness", view: heatMap },
  { name: "Sweep", view: sweep },
  { name: "Log", view: log },
];

export const collectives: View<Models["collectives"]> = {
  title: "Collectives",
  draw({ model, context }) {
    return <Pages model={model} context={context} />;
  },
};

function Pages({ model, context }: { model: Collectives; context: Context }) {
  const [page, setPage] = useState(0);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (page + step + PAGES.length) % PAGES.length;
    setPage(next);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  const alerts = model.snapshot.events.filter((event) => event.kind === "alert").length;
  const Page = PAGES[page]!.view.draw;
  return (
    <>
      <Banners groups={model.snapshot.groups.filter((group) => group.stuck !== null)} />
      <div class="wb-tabs" role="tablist" aria-label="Collectives" onKeyDown={onKeyDown}>
        {PAGES.map(({ name, view }, index) => (
          <button
            key={name}
            type="button"
            role="tab"
            aria-selected={page === index}
            tabIndex={page === index ? 0 : -1}
            title={view.title}
            onClick={() => setPage(index)}
          >
            {name}
            {name === "Log" && alerts > 0 ? ` ▲ ${alerts}` : ""}
          </button>
        ))}
      </div>
      <div role="tabpanel" aria-label={PAGES[page]!.view.title} key={page}>
        <Page model={model} context={context} />
      </div>
    </>
  );
}
