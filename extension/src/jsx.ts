// What the build makes of an element in a view: a call of `h`, half as long as one of the runtime that `tsc` knows.
export { Fragment, h } from "preact";
