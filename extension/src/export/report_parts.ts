// By what the scripts of a report's page find what they have to draw, and each other.
import type { Shown } from "./scope";

/** The id of the element with the data of the page. */
export const PLACE = "workbench-views";
/** The id of the element with the code that makes files. */
export const EXPORTS = "workbench-exports";
/** Where the module of the views leaves for the other one what it has. */
export const VIEWS_HERE = Symbol.for("workbench.page");

/** The page's data for each view: what is shown, and the title of the view that opens first in it. */
export type Part = Shown & { open?: string };
