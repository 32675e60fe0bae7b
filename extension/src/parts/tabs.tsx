// Several pages in one place, one at a time.
import type { ComponentChildren } from "preact";
import { useContext, useState } from "preact/hooks";
import { OPEN } from "../view";
import { SavedPage } from "./status";
import { Button, take } from "./small";

interface Tab {
  name: string;
  /** An explanation. */
  title?: string;
  /** Shown after the name, such as a count; or "". */
  mark?: string;
}

export interface Page extends Tab {
  /** The view that it shows, if others may request that. */
  view?: string;
  title: string;
  draw(): ComponentChildren;
}

interface ListProps {
  label: string;
  class: string;
  tabs: readonly Tab[];
  /** The name of the open page. */
  chosen: string;
  onChoose(name: string): void;
}

/** The names of pages; arrow keys move between them and open them. */
export function TabList({ label, tabs, chosen, onChoose, ...rest }: ListProps) {
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const index = tabs.findIndex((tab) => tab.name === chosen);
    const next = (index + step + tabs.length) % tabs.length;
    onChoose(tabs[next]!.name);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
    take(event);
  };
  return (
    <div class={rest.class} role="tablist" aria-label={label} onKeyDown={onKeyDown}>
      {tabs.map(({ name, title, mark }) => (
        <Button
          key={name}
          role="tab"
          aria-selected={name === chosen}
          tabIndex={name === chosen ? 0 : -1}
          title={title}
          onClick={() => onChoose(name)}
        >
          {name}
          {mark && ` ${mark}`}
        </Button>
      ))}
    </div>
  );
}

/** At least one page; the open one stays open while pages come and go. */
export function Tabs({ label, pages }: { label: string; pages: readonly Page[] }) {
  const saved = useContext(SavedPage);
  const [chosen, setChosen] = useState(() => pages.find((one) => one.title === saved?.open)?.name ?? "");
  const page = pages.find((one) => one.name === chosen) ?? pages[0]!;
  const onOpen = (event: CustomEvent<{ view: string }>) => {
    const asked = pages.find((one) => one.view === event.detail.view);
    if (!saved || !asked) return; // elsewhere a pane opens
    event.preventDefault();
    setChosen(asked.name);
  };
  return (
    <>
      <TabList class="wb-tabs" label={label} tabs={pages} chosen={page.name} onChoose={setChosen} />
      <div role="tabpanel" aria-label={page.title} key={page.name} {...{ [`on${OPEN}`]: onOpen }}>
        {page.draw()}
      </div>
    </>
  );
}
