// A canvas of cells in rows and columns: pointer and arrow keys move between cells, and a line of text describes the
// cell.
import type { ComponentChildren, RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { paletteOf } from "../colours";
import type { Steps } from "../selection";
import { clamped } from "../scale";
import { rangeText } from "./steps";
import { type Cell, drawings, paintBox, type Painting } from "./painting";
import { useRoom, widthOf } from "./width";
import { take } from "./small";

interface Props {
  label: string;
  /** What arrow keys and the pointer move to. */
  hint: string;
  rows: number;
  columns: number;
  /** Its height; for rows with heights, that of the surroundings. */
  height: number;
  /** The height of a row: at least and at most for a chart in a pane, whose height `paint` and `at` get. */
  rowHeights?: readonly [least: number, usual: number, most: number];
  paint(painting: Painting): void;
  /** The cell at a point, in CSS pixels from the canvas's corner; null, or a cell that does not exist, for none. */
  at(x: number, y: number, width: number, rowHeight: number): Cell | null;
  /** The content of a cell, in words. */
  describe(cell: Cell): string;
  /** On click or Enter; by default, pins the step of the cell and highlights its replica. */
  onPick?(cell: Cell): void;
  /** The axis of steps that it shares with other charts, and the step of a cell. */
  steps?: Steps;
  stepOf?(cell: Cell): number | undefined;
  replicaOf?(cell: Cell): number;
  /** The step closest to an x. Dragging from one to another selects the steps in between. */
  stepAt?(x: number, width: number): number;
  /** Dragged from one x to another, where that means more than steps. */
  onDrag?(from: number, to: number, width: number): void;
  /** The visible columns; others are reached only while a range is extended. */
  within?: readonly [first: number, last: number];
  /** The text without a cursor of its own, such as about the step that another chart points at. */
  said?: string;
  /** Other keys; returns true for a key of the view. */
  onKey?(key: string): boolean;
}

/** Pins the step under a chart's cursor, if there is one. */
export const pins = new WeakMap<Element, (() => void) | undefined>();

/** How far keys move the cursor. */
const MOVES: Record<string, readonly [rows: number, columns: number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [0, -10],
  PageDown: [0, 10],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

export function Plane(props: Props) {
  const { rows, columns, steps, stepOf, stepAt, within = [0, columns - 1] } = props;
  const [least, usual, most] = props.rowHeights ?? [0, 0, 0];
  const fills = most > least;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const room = useRoom(box);
  const width = widthOf(room);
  const height = (fills && room.height) || props.height + rows * usual;
  const rowHeight = Math.floor((height - props.height) / rows);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const anchor = useRef<number | undefined>(undefined); // the step from which keys extend a range
  const asked = useRef(false); // a menu is open for the cell under the pointer, which moves to the menu
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const drags = props.onDrag ?? stepAt;
  const isThere = (cell: Cell | null) =>
    cell && cell.row >= 0 && cell.row < rows && cell.column >= 0 && cell.column < columns ? cell : null;
  const inside = isThere(cursor);
  const step = (inside && stepOf?.(inside)) ?? null;
  usePointing(steps, step);

  useLayoutEffect(() => {
    pins.set(box.current!, step !== null && steps?.pointed === step ? () => pin(inside!) : undefined);
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const palette = paletteOf(element);
    context.font = palette.font;
    context.textBaseline = "middle";
    const shown = { width, height, rowHeight, palette };
    const painting = { ...shown, canvas: context, cursor: inside };
    props.paint(painting);
    drawings.set(element, (canvas) => props.paint({ ...shown, canvas, cursor: null }));
    if (drag && drags) {
      const from = Math.min(drag.from, drag.to);
      paintBox(painting, palette.accent, from, 0, Math.abs(drag.to - drag.from), height, 0.2);
    }
  });

  const pin = (cell: Cell) => steps?.pick(stepOf?.(cell), props.replicaOf?.(cell));
  const pick = props.onPick ?? pin;
  const onKeyDown = (event: KeyboardEvent) => {
    const at = inside ?? { row: 0, column: within[1] };
    const next = MOVES[event.key];
    if (next) {
      const [first, last] = event.shiftKey ? [0, columns - 1] : within;
      const to = {
        row: clamped(at.row + next[0], 0, rows - 1),
        column: clamped(at.column + next[1], first, last),
      };
      anchor.current = event.shiftKey ? (anchor.current ?? stepOf?.(at)) : undefined;
      const step = stepOf?.(inside ? to : at);
      if (anchor.current !== undefined && step !== undefined) steps?.brush(anchor.current, step);
      setCursor(inside ? to : at);
    } else if (event.key === "Enter" && inside) pick(inside);
    else if (steps?.range && ["Escape", "f", "0"].includes(event.key)) follow();
    else if (event.key === "Escape" && inside) setCursor(null);
    else if (!props.onKey?.(event.key)) return;
    take(event);
  };
  const follow = () => {
    anchor.current = undefined;
    steps?.follow();
  };
  const where = (event: PointerEvent) => {
    const corner = canvas.current!.getBoundingClientRect();
    return { x: event.clientX - corner.left, y: event.clientY - corner.top };
  };
  const cellAt = ({ x, y }: { x: number; y: number }) => isThere(props.at(x, y, width, rowHeight));
  const onPointerMove = (event: PointerEvent) => {
    const place = where(event);
    if (drag) {
      setDrag({ ...drag, to: place.x });
      return;
    }
    const next = cellAt(place);
    asked.current = false;
    anchor.current = undefined;
    // The same object while it stays on a cell, so that nothing is drawn.
    setCursor((now) => (now && next && now.row === next.row && now.column === next.column ? now : next));
  };
  const onPointerDown = (event: PointerEvent) => {
    if (event.button) return; // the menu of the browser
    const { x } = where(event);
    canvas.current?.setPointerCapture(event.pointerId);
    setDrag({ from: x, to: x });
  };
  const onPointerUp = (event: PointerEvent) => {
    const place = where(event);
    const { x } = place;
    if (!drag) return; // the browser took over the gesture
    setDrag(null);
    if (drags && Math.abs(x - drag.from) > 4) {
      if (props.onDrag) props.onDrag(Math.min(drag.from, x), Math.max(drag.from, x), width);
      else if (stepAt) steps?.brush(stepAt(drag.from, width), stepAt(x, width));
      return;
    }
    const cell = cellAt(place);
    setCursor(cell);
    if (cell) pick(cell);
  };

  const isPinned = inside && steps?.pinned != null && stepOf?.(inside) === steps.pinned;
  const extended =
    steps?.range && (isPinned || anchor.current !== undefined)
      ? `${rangeText(steps.range)}${isPinned ? " pinned" : ""} · `
      : "";
  return (
    <ReadOut
      box={box}
      label={props.label}
      hint={`arrow keys or pointer: ${props.hint}${steps && stepOf ? " · click or Enter: pin its step" : ""}${stepAt ? " · drag: some steps" : ""}`}
      text={inside ? extended + props.describe(inside) : (props.said ?? "")}
      onKeyDown={onKeyDown}
      heights={fills && [least, usual, most].map((each) => props.height + rows * each)}
    >
      <canvas
        ref={canvas}
        aria-hidden
        style={{ height: `${height}px` }}
        onPointerMove={onPointerMove}
        onPointerDown={onPointerDown}
        onPointerUp={onPointerUp}
        onPointerCancel={() => setDrag(null)}
        onContextMenu={() => (asked.current = true)}
        onPointerLeave={() => !drag && !asked.current && setCursor(null)}
        onDblClick={follow}
      />
    </ReadOut>
  );
}

type Heights = readonly number[];

/** The element of a chart; with `heights`, the style sheet sets its height. */
export function chartOf(heights: Heights | false | undefined) {
  if (!heights) return { class: "wb-chart" };
  const [least, usual, most] = heights.map((each) => `${each}px`);
  return {
    class: "wb-chart wb-fills",
    style: { "--wb-least": least, "--wb-usual": usual, "--wb-most": most },
  };
}

interface ReadOutProps {
  box: RefObject<HTMLDivElement>;
  label: string;
  hint: string;
  /** The description of the cell under the cursor, or "". */
  text: string;
  onKeyDown(event: KeyboardEvent): void;
  /** For a chart that fills its pane: its height at least, by itself, and at most. */
  heights?: Heights | false;
  children: ComponentChildren;
}

/** A chart with keyboard navigation, and below it the description of the cell under its cursor. */
export function ReadOut({ box, label, hint, text, onKeyDown, heights, children }: ReadOutProps) {
  return (
    <>
      <div
        {...chartOf(heights)}
        ref={box}
        role="application"
        aria-label={label}
        aria-roledescription="chart"
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        {children}
      </div>
      <output class="wb-readout" aria-live="polite" data-hint={hint}>
        {text}
      </output>
    </>
  );
}

/** Points at the step under the cursor, while there is one. */
function usePointing(steps: Steps | undefined, step: number | null): void {
  const newest = useRef(steps);
  newest.current = steps;
  useLayoutEffect(() => {
    if (step === null) return undefined;
    newest.current?.point(step);
    return () => newest.current?.point(null);
  }, [step]);
}
