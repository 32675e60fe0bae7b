// The elements of a report's page by which its script finds what it has to draw.
import type { Shown } from "./scope";

/** The id of the element with the data of the page. */
export const PLACE = "workbench-views";
/** The id of the element with the code that makes files. */
export const EXPORTS = "workbench-exports";

/** What the page has of each view: what is shown, and the title of the view that opens first in it. */
export type Part = Shown & { open?: string };
