// What the build turns a view's element into: a `createElement` call, half as long as one of the runtime that `tsc`
// knows.
export { createElement, Fragment } from "preact";
