// The margins and the axis of steps that all charts of the overview share, so that one lies above the other: names left, the row's
// own number right.
import type { Palette } from "../colours";
import type { Painting } from "../parts/plane";
import type { Row } from "./rows";

const NARROW = 400;
const WIDEST = 24;
const LEAST = 4;

export function gutters(width: number): { left: number; right: number } {
  return { left: 92, right: width < NARROW ? 0 : 92 };
}

/** Columns for the newest of some steps, as wide as they may be: the number of the first, and how wide they are. */
export function cellsOf(
  steps: number,
  width: number,
): { left: number; right: number; first: number; size: number } {
  const { left, right } = gutters(width);
  const room = width - left - right;
  const columns = Math.min(steps, Math.floor(room / LEAST));
  return { left, right, first: steps - columns, size: Math.min(WIDEST, room / Math.max(1, columns)) };
}

interface StepAxis {
  steps: readonly number[];
  first: number;
  size: number;
  left: number;
  /** The steps that the lanes show. */
  shown: { first: number; last: number };
  top: number;
  foot: number;
}

/** Numbers of steps below columns, and a frame round those that the lanes show. */
export function paintSteps({ canvas, palette }: Painting, axis: StepAxis): void {
  const { first, size, left, shown, top, foot } = axis;
  const steps = axis.steps.slice(first);
  const from = left + steps.findIndex((one) => one >= shown.first) * size;
  const end = left + steps.length * size;
  const note = `${shown.first} to ${shown.last}: in Lanes`;
  const noteWidth = canvas.measureText(note).width;
  const hasNote = shown.last > shown.first && steps.length > shown.last - shown.first + 1;
  canvas.fillStyle = palette.quiet;
  canvas.textAlign = "center";
  let free = -Infinity;
  steps.forEach((step, column) => {
    const label = column ? String(step) : `step ${step}`;
    const middle = left + (column + 0.5) * size;
    const half = canvas.measureText(label).width / 2;
    if (column && (step % 10 || middle - half < free)) return;
    if (hasNote && middle + half > end - noteWidth - 10) return;
    const centre = Math.max(middle, left + half);
    canvas.fillText(label, centre, foot + 12);
    free = centre + half + 12;
  });
  if (hasNote) {
    canvas.strokeStyle = palette.accent;
    canvas.lineWidth = 1.5;
    canvas.strokeRect(from - 0.5, top - 2, end - from, foot - top + 4);
    canvas.fillStyle = palette.accent;
    canvas.fillRect(from - 1, top - 4, end - from + 1, 3);
    canvas.textAlign = "right";
    canvas.fillText(note, Math.max(end, left + noteWidth), foot + 12);
  }
  canvas.textAlign = "left";
}

/** The name of a row, with the dot in its colour. */
export function paintLabel(
  { canvas, palette }: { canvas: CanvasRenderingContext2D; palette: Palette },
  row: Row,
  y: number,
  strong: boolean,
): void {
  const colour = palette.replicas[row.colour];
  if (colour) {
    canvas.fillStyle = colour;
    canvas.beginPath();
    canvas.arc(5, y, 4, 0, 7);
    canvas.fill();
  }
  canvas.fillStyle = palette.text;
  canvas.font = strong ? palette.strong : palette.font;
  canvas.fillText(row.label, colour ? 16 : 1, y);
  canvas.font = palette.font;
}
