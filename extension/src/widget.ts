export { attach } from "./attach";
export { mount } from "./mount";
