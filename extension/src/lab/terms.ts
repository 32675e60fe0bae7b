// Whether the views of the page say plain words or the field's terms: as the settings have it.
import { sayFieldTerms } from "../parts/terms";
import type { Settings } from "./settings";

/** Follows the settings: when they are read, and whenever this one changes. In between a notebook may say otherwise. */
export function followTerms(settings: Settings): void {
  let before: boolean | null = null;
  settings.listen(() => {
    if (settings.fieldTerms !== before) sayFieldTerms(settings.fieldTerms);
    before = settings.fieldTerms;
  });
}
