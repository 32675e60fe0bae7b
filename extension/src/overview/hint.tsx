// What users see with their first overview: what to click, and where the other views are.
import { useContext } from "preact/hooks";
import { ExportScope } from "../export/scope";
import { keep, kept } from "../kept";
import { Icon } from "../parts/icons";
import { Button, take } from "../parts/small";
import { SavedPage } from "../parts/status";
import { whereOthersAre } from "./others";

const NAME = "overview-hint";
/** A class of the page's body: views notice it and redraw. */
const SEEN = "wb-hint-seen";

function isSeen(): boolean {
  return document.body.classList.contains(SEEN) || kept(NAME) !== null;
}

/** Removes the hint permanently from all views, because the user has read it or follows it. */
export function endHint(): void {
  if (isSeen()) return;
  keep(NAME, "seen");
  document.body.classList.add(SEEN);
}

/** Placed below all charts like a card of the page: it covers and moves nothing, and takes no focus. */
export function Hint() {
  const scope = useContext(ExportScope);
  const isSaved = useContext(SavedPage) !== null;
  if (isSeen()) return null;
  const others =
    scope?.whole.view === "replay" ? "The tabs above have the other views." : isSaved ? "" : whereOthersAre();
  const end = (button: HTMLElement) => {
    // Keyboard users continue at the first figure, which the hint is about.
    button.closest(".wb-page")?.querySelector<HTMLElement>(".wb-figure")?.focus();
    endHint();
  };
  return (
    <div
      class="wb-hint"
      role="note"
      aria-label="First steps"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        take(event);
        end(event.currentTarget);
      }}
    >
      <p>
        <b>New here?</b> Click a figure, or the button <Icon name="open" /> of a chart, to open the view that
        explains it. Point at a step, and all charts mark it. {others}
      </p>
      <Button onClick={(event) => end(event.currentTarget)}>Got it</Button>
    </div>
  );
}
