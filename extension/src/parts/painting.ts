// How charts on canvases draw.
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
  /** The height of a row, in a chart whose rows have heights. */
  rowHeight: number;
  palette: Palette;
  cursor: Cell | null;
}

/** How charts on canvases are drawn, for pictures of them. */
export const drawings = new WeakMap<HTMLCanvasElement, (context: CanvasRenderingContext2D) => void>();

type Drawing = Pick<Painting, "canvas" | "palette">;

/** Fills a rectangle; with less than full strength, what is below remains visible. */
export function paintBox(
  { canvas }: Pick<Painting, "canvas">,
  colour: string,
  x: number,
  y: number,
  width: number,
  height: number,
  strength = 1,
): void {
  const alpha = canvas.globalAlpha;
  canvas.fillStyle = colour;
  canvas.globalAlpha = alpha * strength;
  canvas.fillRect(x, y, width, height);
  canvas.globalAlpha = alpha;
}

/** Writes a text from x on, or as `align` says. */
export function paintText(
  { canvas, palette }: Drawing,
  colour: string,
  text: string,
  x: number,
  y: number,
  align: CanvasTextAlign = "left",
  strong = false,
): void {
  canvas.fillStyle = colour;
  canvas.textAlign = align;
  canvas.font = strong ? palette.strong : palette.font;
  canvas.fillText(text, x, y);
  canvas.font = palette.font;
  canvas.textAlign = "left";
}

/** A text, or as much of its start as fits. */
export function fitting(canvas: CanvasRenderingContext2D, text: string, room: number): string {
  let shown = text;
  for (let end = text.length - 1; end > 0 && canvas.measureText(shown).width > room; end -= 1)
    shown = `${text.slice(0, end)}…`;
  return shown;
}

/** Writes a text that ends at x. */
export function paintEnd(
  painting: Drawing,
  colour: string,
  text: string,
  x: number,
  y: number,
  strong = false,
): void {
  paintText(painting, colour, text, x, y, "right", strong);
}

/** Lines across a chart at numbers of its axis, with the numbers in front. */
export function paintTicks(
  painting: Painting,
  ticks: readonly number[],
  y: (value: number) => number,
  { left, right }: { left: number; right: number },
): void {
  const { line, quiet } = painting.palette;
  for (const tick of ticks) {
    paintBox(painting, line, left, Math.round(y(tick)), right - left, 1);
    paintEnd(painting, quiet, figure(tick), left - 8, y(tick));
  }
}

/** A number at the right edge of a chart, and its name. */
export function paintNewest(painting: Painting, text: string, word: string, y: number): void {
  const { palette, width } = painting;
  paintEnd(painting, palette.text, text, width - 2, y - 7, true);
  paintEnd(painting, palette.quiet, word, width - 2, y + 7);
}

type Places = readonly (readonly [x: number, y: number] | null)[];

/** Fills what is between such a line and `foot`, faintly. */
export function paintArea({ canvas, palette }: Painting, places: Places, foot: number): void {
  canvas.fillStyle = palette.quiet;
  canvas.globalAlpha = 0.13;
  canvas.beginPath();
  let last: Places[number] = null;
  for (const place of [...places, null]) {
    if (place && !last) canvas.moveTo(place[0], foot);
    if (place) canvas.lineTo(...place);
    else if (last) canvas.lineTo(last[0], foot);
    last = place;
  }
  canvas.fill();
  canvas.globalAlpha = 1;
}

/** Draws a line from place to place, with gaps where there is none. */
export function paintLine({ canvas }: Painting, colour: string, lineWidth: number, places: Places): void {
  let isOpen = false;
  canvas.strokeStyle = colour;
  canvas.lineWidth = lineWidth;
  canvas.beginPath();
  for (const place of places) {
    if (place) canvas[isOpen ? "lineTo" : "moveTo"](...place);
    isOpen = place !== null;
  }
  canvas.stroke();
}

/** Draws a quiet dotted line down from one y to another. */
export function paintDotted(painting: Painting, x: number, from: number, to: number): void {
  painting.canvas.setLineDash([2, 3]);
  paintLine(painting, painting.palette.quiet, 1, [
    [x, from],
    [x, to],
  ]);
  painting.canvas.setLineDash([]);
}

/** Draws the outline of a rectangle. */
export function paintOutline(
  { canvas }: Painting,
  colour: string,
  lineWidth: number,
  x: number,
  y: number,
  width: number,
  height: number,
): void {
  canvas.strokeStyle = colour;
  canvas.lineWidth = lineWidth;
  canvas.strokeRect(x, y, width, height);
}

/** Fills a circle. */
export function paintDot({ canvas }: Pick<Painting, "canvas">, x: number, y: number, radius: number): void {
  canvas.beginPath();
  canvas.arc(x, y, radius, 0, 7);
  canvas.fill();
}

/** The name of a row, with a dot in its colour. A name that is too long is condensed. */
export function paintLabel(
  { canvas, palette }: Drawing,
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

/** Marks the cell under the cursor. */
export function paintCursor(painting: Painting, { x, y, width, height }: Rectangle, lineWidth = 2): void {
  paintOutline(painting, painting.palette.text, lineWidth, x, y, width, height);
}

/** Fills a rectangle with diagonal lines, as a second sign besides the colour. */
export function hatch(canvas: CanvasRenderingContext2D, rectangle: Rectangle, colour: string): void {
  const { x, y, width, height } = rectangle;
  canvas.save();
  canvas.beginPath();
  canvas.rect(x, y, width, height);
  canvas.clip();
  canvas.strokeStyle = colour;
  canvas.lineWidth = 1;
  canvas.beginPath();
  // All lines of the canvas are on one grid, so that those of neighbours continue each other.
  const first = Math.floor((x - height) / 4) * 4;
  for (let at = first; at < x + width + height; at += 4) {
    canvas.moveTo(at, y + height);
    canvas.lineTo(at + height, y);
  }
  canvas.stroke();
  canvas.restore();
}
