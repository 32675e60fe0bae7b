// The margins that all charts of the overview share, so that one lies above the other: names left, the row's own number right.
import type { Palette } from "../colours";
import type { Row } from "./rows";

const NARROW = 400;

export function gutters(width: number): { left: number; right: number } {
  return { left: 92, right: width < NARROW ? 0 : 92 };
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
