// What only a dashboard needs: its bar, and views in its pages.
export { pane } from "./pane";
export { shell } from "./shell";
