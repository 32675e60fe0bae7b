// The dashboard's own parts: its bar, and views in its pages.
export { pane } from "./pane";
export { shell } from "./shell";
