// The files of a dataset side by side, in widths by their number of elements, and the replicas that read each.
import { count } from "../format";
import type { DatasetSharding } from "../models";
import { paintBox, type Painting } from "../parts/painting";

/** The height of files and of what is below them. */
export const FILES = 48;
const BOX = 22;
/** Narrower ones have no names. */
const LEAST = 48;

/** Draws files between two places, if there are any. */
export function paintFiles(painting: Painting, model: DatasetSharding, from: number, to: number): void {
  const { canvas, palette } = painting;
  const { marks, positions } = model;
  marks.forEach(([begin, name], index) => {
    const end = marks[index + 1]?.[0] ?? positions;
    const place = (position: number) => from + ((to - from) * position) / positions;
    const [x, width] = [place(begin), place(end) - place(begin) - 2];
    const by = model.read_by?.[index];
    const colour = palette.replica(by ? Number(by) : -1) ?? palette.communicate;
    paintBox(painting, colour, x, 0, width, BOX, 0.2);
    paintBox(painting, colour, x, BOX - 3, width, 3);
    if (width < LEAST) return;
    canvas.fillStyle = palette.text;
    canvas.fillText(`${name.split("/").at(-1)} · ${count(end - begin)}`, x + 4, BOX / 2 - 1, width - 8);
    canvas.fillStyle = palette.quiet;
    if (by) canvas.fillText(`read by replica${/\D/.test(by) ? "s" : ""} ${by}`, x + 4, BOX + 9, width - 4);
  });
}
