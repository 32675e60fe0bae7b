// Whether the views of the page use plain words or the field's terms, as the settings say.
import { sayFieldTerms } from "../parts/terms";
import type { Settings } from "./settings";

/** Follows the settings: when they are read, and whenever this one changes. A notebook may override it in between. */
export function followTerms(settings: Settings): void {
  let before: boolean | null = null;
  settings.listen(() => {
    if (settings.fieldTerms !== before) sayFieldTerms(settings.fieldTerms);
    before = settings.fieldTerms;
  });
}
