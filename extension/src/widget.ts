export { attach } from "./attach";
export { pane } from "./dashboard/pane";
export { shell } from "./dashboard/shell";
export { mount } from "./mount";
