// A canvas of cells by rows and columns: pointer and arrow keys go from cell to cell, a line of text says what is there.
import type { ComponentChildren, RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { paletteOf, type Palette } from "../colours";
import { drawings } from "../export/svg_canvas";
import type { Steps } from "../selection";
import { useWidth } from "./width";

export interface Cell {
  row: number;
  column: number;
}

interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Painting {
  canvas: CanvasRenderingContext2D;
  width: number;
  height: number;
  palette: Palette;
  cursor: Cell | null;
}

interface Props {
  label: string;
  hint: string;
  rows: number;
  columns: number;
  height: number;
  paint(painting: Painting): void;
  /** The cell at a point, in CSS pixels from the corner of the canvas; null, or one that there is not, for none. */
  at(x: number, y: number, width: number): Cell | null;
  /** What is in a cell, in words. */
  describe(cell: Cell): string;
  onPick?(cell: Cell): void;
  /** Dragged from one x to another. */
  onDrag?(from: number, to: number, width: number): void;
  /** The axis of steps that it shares with other charts, and the step of a cell. */
  steps?: Steps;
  stepOf?(cell: Cell): number | undefined;
  /** Other keys; true if it was one of the view's. */
  onKey?(key: string): boolean;
}

export function Plane(props: Props) {
  const { rows, columns, height } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [cursor, setCursor] = useState<Cell | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const inside = cursor && cursor.row < rows && cursor.column < columns ? cursor : null;
  usePointing(props.steps, (inside && props.stepOf?.(inside)) ?? null);

  useLayoutEffect(() => {
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
    props.paint({ canvas: context, width, height, palette, cursor: inside });
    drawings.set(element, (canvas) => props.paint({ canvas, width, height, palette, cursor: null }));
    if (drag) {
      context.globalAlpha = 0.2;
      context.fillStyle = palette.accent;
      context.fillRect(Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), height);
      context.globalAlpha = 1;
    }
  });

  const onKeyDown = (event: KeyboardEvent) => {
    const at = inside ?? { row: 0, column: columns - 1 };
    const moves: Record<string, Cell> = {
      ArrowUp: { row: at.row - 1, column: at.column },
      ArrowDown: { row: at.row + 1, column: at.column },
      ArrowLeft: { row: at.row, column: at.column - 1 },
      ArrowRight: { row: at.row, column: at.column + 1 },
      PageUp: { row: at.row, column: at.column - 10 },
      PageDown: { row: at.row, column: at.column + 10 },
      Home: { row: at.row, column: 0 },
      End: { row: at.row, column: columns - 1 },
    };
    const next = moves[event.key];
    if (next) {
      const clamp = (value: number, size: number) => Math.max(0, Math.min(size - 1, value));
      setCursor(inside ? { row: clamp(next.row, rows), column: clamp(next.column, columns) } : at);
    } else if (event.key === "Enter" && inside) props.onPick?.(inside);
    else if (event.key === "Escape" && inside) setCursor(null);
    else if (!props.onKey?.(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const where = (event: PointerEvent) => {
    const corner = canvas.current!.getBoundingClientRect();
    return { x: event.clientX - corner.left, y: event.clientY - corner.top };
  };
  const cellAt = ({ x, y }: { x: number; y: number }) => {
    const cell = props.at(x, y, width);
    return cell && cell.row >= 0 && cell.row < rows && cell.column >= 0 && cell.column < columns
      ? cell
      : null;
  };
  const onPointerMove = (event: PointerEvent) => {
    const place = where(event);
    if (drag) {
      setDrag({ ...drag, to: place.x });
      return;
    }
    const next = cellAt(place);
    // The same object while it stays on a cell: nothing is drawn then.
    setCursor((now) => (now && next && now.row === next.row && now.column === next.column ? now : next));
  };
  const onPointerDown = (event: PointerEvent) => {
    if (!props.onDrag) return;
    const { x } = where(event);
    canvas.current?.setPointerCapture(event.pointerId);
    setDrag({ from: x, to: x });
  };
  const onPointerUp = (event: PointerEvent) => {
    const place = where(event);
    const { x } = place;
    if (drag && Math.abs(x - drag.from) > 4) {
      props.onDrag?.(Math.min(drag.from, x), Math.max(drag.from, x), width);
    } else {
      const cell = cellAt(place);
      if (cell) props.onPick?.(cell);
    }
    setDrag(null);
  };

  return (
    <ReadOut
      box={box}
      label={props.label}
      hint={props.hint}
      text={inside ? props.describe(inside) : ""}
      onKeyDown={onKeyDown}
    >
      <canvas
        ref={canvas}
        aria-hidden
        style={{ height: `${height}px` }}
        onPointerMove={onPointerMove}
        onPointerDown={onPointerDown}
        onPointerUp={onPointerUp}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => !drag && setCursor(null)}
      />
    </ReadOut>
  );
}

interface ReadOutProps {
  box: RefObject<HTMLDivElement>;
  label: string;
  hint: string;
  /** What is at the cursor, or "". */
  text: string;
  width?: string;
  onKeyDown(event: KeyboardEvent): void;
  children: ComponentChildren;
}

/** A chart that keys go through, and below it what is at its cursor. */
export function ReadOut({ box, label, hint, text, width, onKeyDown, children }: ReadOutProps) {
  return (
    <>
      <div
        class="wb-chart"
        ref={box}
        role="application"
        aria-label={label}
        aria-roledescription="chart"
        tabIndex={0}
        style={{ maxWidth: width }}
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

/** Points at the step that the cursor is at, for as long as it is at one. */
function usePointing(steps: Steps | undefined, step: number | null): void {
  const newest = useRef(steps);
  newest.current = steps;
  useLayoutEffect(() => {
    if (step === null) return undefined;
    newest.current?.point(step);
    return () => newest.current?.point(null);
  }, [step]);
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
