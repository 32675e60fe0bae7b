// The margins and the axis of steps that all charts of the overview share, so that they align: names on the left, each
// row's number on the right.
import { paintEnd, paintText, type Painting } from "../parts/painting";
import { isIn, paintFrame, paintRange, spanText } from "../parts/steps";
import { clamped } from "../scale";
import type { StepRange } from "../selection";

const NARROW = 400;
const WIDEST = 24;
const LEAST = 4;

export function gutters(width: number): { left: number; right: number } {
  return { left: 100, right: width < NARROW ? 0 : 92 };
}

/** Columns for the newest steps, as wide as possible: the number of the first one, and their width. */
export function cellsOf(
  steps: number,
  width: number,
  widest = WIDEST,
): { left: number; right: number; first: number; size: number } {
  const { left, right } = gutters(width);
  const room = width - left - right;
  const columns = Math.min(steps, Math.floor(room / LEAST));
  return { left, right, first: steps - columns, size: Math.min(widest, room / Math.max(1, columns)) };
}

/** The step whose column is closest to an x. */
export function stepAt(steps: readonly number[], x: number, width: number, widest?: number): number {
  const { left, first, size } = cellsOf(steps.length, width, widest);
  return steps[clamped(first + Math.floor((x - left) / size), first, steps.length - 1)]!;
}

interface StepAxis {
  steps: readonly number[];
  first: number;
  size: number;
  left: number;
  /** The steps that the lanes show. */
  shown: { first: number; last: number };
  /** The selected steps. */
  range: StepRange | null;
  top: number;
  foot: number;
}

/** Numbers of steps below columns, and a frame around the selected ones, otherwise around those that the lanes show. */
export function paintSteps(painting: Painting, axis: StepAxis): void {
  const { canvas, palette } = painting;
  const { first, size, left, shown, range, top, foot } = axis;
  const steps = axis.steps.slice(first);
  const marked = range ?? shown;
  const columns = steps.filter((step) => isIn(marked, step)).length;
  const from = left + steps.findIndex((step) => step >= marked.first) * size;
  const to = from + columns * size;
  const inLanes = spanText(marked) === spanText(shown);
  const note = `${spanText(marked)}${inLanes ? ": in Lanes" : ""}`;
  const noteWidth = canvas.measureText(note).width;
  const noteEnd = Math.max(to, left + noteWidth);
  const hasNote = columns > 0 && (range !== null || (columns > 1 && columns < steps.length));
  let free = -Infinity;
  steps.forEach((step, column) => {
    const label = column ? String(step) : `step ${step}`;
    const middle = left + (column + 0.5) * size;
    const half = canvas.measureText(label).width / 2;
    if (column && (step % 10 || middle - half < free)) return;
    if (hasNote && middle + half > noteEnd - noteWidth - 10 && middle - half < noteEnd + 10) return;
    const centre = Math.max(middle, left + half);
    paintText(painting, palette.quiet, label, centre, foot + 12, "center");
    free = centre + half + 12;
  });
  if (hasNote) {
    const frame = { from, to, left, right: left + steps.length * size, top, foot };
    (range ? paintRange : paintFrame)(painting, frame);
    paintEnd(painting, palette.accent, note, noteEnd, foot + 12); // like the frame
  }
}
