export { mount } from "./mount";
