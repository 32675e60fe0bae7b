// The axis that charts of one run share: the step that is pointed at in one of them is marked in all.
import type { GroupView } from "../models";
import type { Steps } from "../selection";
import type { Context } from "../view";
import type { Painting } from "./plane";

/** The steps of a group; null stands for replicas that are not known. */
export function stepsOf(group: GroupView | null, { selected, point }: Context): Steps {
  const of = group && `${group.run_id}|${group.group}`;
  return {
    pointed: of && selected.step?.of === of ? selected.step.number : null,
    point: (number) => point(of && number !== null && number >= 0 ? { of, number } : null),
  };
}

/** Marks what lies between two places of a time axis, from the top down to `foot`. */
export function paintBand(
  { canvas, palette }: Painting,
  { from, to, foot }: { from: number; to: number; foot: number },
): void {
  canvas.fillStyle = palette.accent;
  canvas.globalAlpha = 0.14;
  canvas.fillRect(from, 0, to - from, foot);
  canvas.globalAlpha = 1;
  for (const edge of [from, to]) canvas.fillRect(edge - 0.5, 0, 1, foot);
}

/** Marks a column of coloured cells by its outline, which is seen on light and on dark ones. */
export function paintColumn(
  { canvas, palette }: Painting,
  { left, top, width, height }: { left: number; top: number; width: number; height: number },
): void {
  for (const [colour, line] of [
    [palette.ground, 4],
    [palette.text, 1.5],
  ] as const) {
    canvas.strokeStyle = colour;
    canvas.lineWidth = line;
    canvas.strokeRect(left, top, width, height);
  }
}
