// What charts on canvases draw with.
import type { Palette } from "../colours";
import { figure } from "../format";

export interface Cell {
  row: number;
  column: number;
}

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Painting {
  canvas: CanvasRenderingContext2D;
  width: number;
  height: number;
  /** How high a row is, in a chart whose rows have heights. */
  rowHeight: number;
  palette: Palette;
  cursor: Cell | null;
}

/** How charts on canvases are drawn, for pictures of them. */
export const drawings = new WeakMap<HTMLCanvasElement, (context: CanvasRenderingContext2D) => void>();

/** Writes a text that ends at x. */
export function paintEnd(
  { canvas, palette }: Pick<Painting, "canvas" | "palette">,
  text: string,
  x: number,
  y: number,
  strong = false,
): void {
  canvas.textAlign = "right";
  canvas.font = strong ? palette.strong : palette.font;
  canvas.fillText(text, x, y);
  canvas.font = palette.font;
  canvas.textAlign = "left";
}

/** Lines across a chart at numbers of its axis, which stand before them. */
export function paintTicks(
  painting: Painting,
  ticks: readonly number[],
  y: (value: number) => number,
  { left, right }: { left: number; right: number },
): void {
  const { canvas, palette } = painting;
  for (const tick of ticks) {
    canvas.fillStyle = palette.line;
    canvas.fillRect(left, Math.round(y(tick)), right - left, 1);
    canvas.fillStyle = palette.quiet;
    paintEnd(painting, figure(tick), left - 8, y(tick));
  }
}

/** A number at the right edge of a chart, and what it is. */
export function paintNewest(painting: Painting, text: string, word: string, y: number): void {
  const { canvas, palette, width } = painting;
  canvas.fillStyle = palette.text;
  paintEnd(painting, text, width - 2, y - 7, true);
  canvas.fillStyle = palette.quiet;
  paintEnd(painting, word, width - 2, y + 7);
}

/** Draws a line from place to place, broken where there is none. */
export function paintLine(
  { canvas }: Painting,
  places: readonly (readonly [x: number, y: number] | null)[],
): void {
  let isOpen = false;
  canvas.beginPath();
  for (const place of places) {
    if (place) canvas[isOpen ? "lineTo" : "moveTo"](...place);
    isOpen = place !== null;
  }
  canvas.stroke();
}

/** Draws a dotted line down from one y to another. */
export function paintDotted(painting: Painting, x: number, from: number, to: number): void {
  painting.canvas.setLineDash([2, 3]);
  paintLine(painting, [
    [x, from],
    [x, to],
  ]);
  painting.canvas.setLineDash([]);
}

/** Fills a circle. */
export function paintDot({ canvas }: Pick<Painting, "canvas">, x: number, y: number, radius: number): void {
  canvas.beginPath();
  canvas.arc(x, y, radius, 0, 7);
  canvas.fill();
}

/** The name of a row, with the dot in its colour; a longer one than its room is squeezed. */
export function paintLabel(
  { canvas, palette }: Pick<Painting, "canvas" | "palette">,
  row: { label: string; replica: number },
  y: number,
  strong: boolean,
  room = 84,
): void {
  const colour = palette.replica(row.replica);
  if (colour) {
    canvas.fillStyle = colour;
    paintDot({ canvas }, 5, y, 4);
  }
  canvas.fillStyle = palette.text;
  canvas.font = strong ? `600 ${palette.label}` : palette.label;
  canvas.fillText(row.label, colour ? 16 : 1, y, room);
  canvas.font = palette.font;
}

/** Marks the cell that the cursor is at. */
export function paintCursor(
  { canvas, palette }: Painting,
  { x, y, width, height }: Rectangle,
  lineWidth = 2,
): void {
  canvas.strokeStyle = palette.text;
  canvas.lineWidth = lineWidth;
  canvas.strokeRect(x, y, width, height);
}

/** Fills a rectangle with diagonal lines of a colour, as a second sign beside the colour itself. */
export function hatch(canvas: CanvasRenderingContext2D, rectangle: Rectangle, colour: string): void {
  const { x, y, width, height } = rectangle;
  canvas.save();
  canvas.beginPath();
  canvas.rect(x, y, width, height);
  canvas.clip();
  canvas.strokeStyle = colour;
  canvas.lineWidth = 1;
  canvas.beginPath();
  // Lines lie on one grid for the whole canvas, so that neighbours go on in each other.
  const first = Math.floor((x - height) / 4) * 4;
  for (let at = first; at < x + width + height; at += 4) {
    canvas.moveTo(at, y + height);
    canvas.lineTo(at + height, y);
  }
  canvas.stroke();
  canvas.restore();
}
