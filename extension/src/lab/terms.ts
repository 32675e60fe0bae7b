// Whether the views of the page say plain words or the field's terms: as the settings have it.
import { TERMS } from "../parts/terms";
import type { Settings } from "./settings";

/** Follows the settings. */
export function followTerms(settings: Settings): void {
  settings.listen(() => document.body.classList.toggle(TERMS, settings.fieldTerms));
}
