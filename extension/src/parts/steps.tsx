// The axis that charts of one run share: all mark the step that one of them points at, and the selected steps.
import { useRef } from "preact/hooks";
import { known } from "../format";
import type { Steps, StepRange } from "../selection";
import type { Context } from "../view";
import { paintBox, paintOutline, type Painting } from "./painting";
import { Button } from "./small";

/** The replicas that the steps belong to. */
export interface Stepping {
  run_id: string;
  group: string;
}

/** The steps of a group; undefined for unknown replicas. */
export function stepsOf(
  group: Stepping | null | undefined,
  { selected, select, point, brush }: Context,
): Steps {
  const of = group && `${group.run_id}|${group.group}`;
  const { step } = selected;
  const range = of && selected.range?.of === of ? selected.range : null;
  const pinned = range && !range.time && range.first === range.last ? range.first : null;
  return {
    pointed: of && step?.of === of ? step.number : null,
    point: (number) => point(of && number !== null && number >= 0 ? { of, number } : null),
    range,
    brush: (one, other, time) =>
      of && brush({ of, first: Math.min(one, other), last: Math.max(one, other), time }),
    follow: () => range && brush(null),
    pinned,
    pick(step, replica = -1) {
      const isLit = selected.replica === replica;
      const canPin = of && step !== undefined && step >= 0;
      const again = (!canPin || pinned === step) && (replica < 0 || isLit);
      if (canPin) brush(again ? null : { of, first: step, last: step });
      if (isLit === again) select(replica);
    },
  };
}

/** From one step to another. */
export type Span = Pick<StepRange, "first" | "last">;

/** Whether a step is in a range; without a range, every step is. */
export function isIn(range: Span | null, step: number): boolean {
  return !range || (step >= range.first && step <= range.last);
}

/** "12", "12 to 20". */
export function spanText({ first, last }: Span): string {
  return first === last ? String(first) : `${first} to ${last}`;
}

/** "step 12", "steps 12 to 20". */
export function rangeText(range: Span): string {
  return `step${range.first === range.last ? "" : "s"} ${spanText(range)}`;
}

/** Says which steps are shown, and lets views follow the run again. */
export function Brushed({ steps: { range, follow } }: { steps: Steps }) {
  return (
    range && (
      <Button class="wb-brushed" title="Show the newest steps again (Escape)" onClick={follow}>
        {rangeText(range)} <span aria-hidden>×</span>
      </Button>
    )
  );
}

/** Marks what is between two places of a time axis, from the top down to `foot`. */
export function paintBand(
  painting: Painting,
  { from, to, foot }: { from: number; to: number; foot: number },
): void {
  const { accent } = painting.palette;
  paintBox(painting, accent, from, 0, to - from, foot, 0.14);
  for (const edge of [from, to]) paintBox(painting, accent, edge - 0.5, 0, 1, foot);
}

/** Marks a range of an axis from `left` to `right` by a frame; the rest fades. */
export function paintRange(
  painting: Painting,
  place: { from: number; to: number; left: number; right: number; top: number; foot: number },
): void {
  const { from, to, left, right, top, foot } = place;
  const fade = (x: number, width: number) =>
    paintBox(painting, painting.palette.ground, x, top, width, foot - top, 0.65);
  fade(left, from - left);
  fade(to, right - to);
  paintFrame(painting, place);
}

/** A frame with a strong upper edge. */
export function paintFrame(
  painting: Painting,
  { from, to, top, foot }: { from: number; to: number; top: number; foot: number },
): void {
  const { accent } = painting.palette;
  paintOutline(painting, accent, 1.5, from - 0.5, top - 2, to - from, foot - top + 4);
  paintBox(painting, accent, from - 1, top - 4, to - from + 1, 3);
}

/** Marks a column of coloured cells by an outline that is visible on light and dark ones. */
export function paintColumn(
  painting: Painting,
  { left, top, width, height }: { left: number; top: number; width: number; height: number },
): void {
  const { ground, text } = painting.palette;
  paintOutline(painting, ground, 4, left, top, width, height);
  paintOutline(painting, text, 1.5, left, top, width, height);
}

/**
 * The newest model; or, while `still`, the first one for which `has` is true. If that changes to something that only
 * the newest model has, the newest.
 */
export function useStill<T>(newest: T, still: boolean, has: (one: T) => boolean): T {
  const kept = useRef<T | null>(null);
  kept.current = still ? (known([kept.current, newest]).find(has) ?? null) : null;
  return kept.current ?? newest;
}
