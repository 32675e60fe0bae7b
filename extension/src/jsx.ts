// What the build makes of an element in a view: a call of `createElement`, half as long as one of the runtime that `tsc` knows.
export { createElement, Fragment } from "preact";
