// What each replica reads in each step: counts in a matrix, which shuffling does not change, or places on the axis of
// elements.
import { useRef } from "preact/hooks";
import { sequential, textOn } from "../colours";
import { count, counted, joined } from "../format";
import type { DatasetSharding, Reader } from "../models";
import { gutters } from "../overview/gutters";
import { Key, Ramp } from "../parts/marks";
import {
  hatch,
  paintBox,
  paintCursor,
  paintEnd,
  paintLabel,
  paintLine,
  paintOutline,
  type Cell,
  type Painting,
} from "../parts/painting";
import { Plane } from "../parts/plane";
import { Note } from "../parts/small";
import { Swatch } from "../overview/module";
import { isIn, rangeText, type Span, spanText, stepsOf } from "../parts/steps";
import { useWidth } from "../parts/width";
import { clamped } from "../scale";
import { strengthOf } from "../selection";
import type { Context } from "../view";
import { columnsOf, readingOf, remainderOf, rowsOf, usualOf, windowOf } from "./columns";
import { FILES, paintFiles } from "./files";
import { batchesOf, elementsNote, isLong, readText, stepOf, waitIn, waitsOf, waitText } from "./progress";

/** Room for how many rows a replica reads in total, as a number and a bar. */
const RIGHT = 132;
const [ROW, LOW_ROW] = [28, 20];
/** With more rows than this, rows are lower. */
const FEW = 12;
/** How strong the colour is of rows that were read, and of those still to come, in percent. */
const [READ, TO_COME] = [34, 15];
/** The height of the mark of a replica that waited. */
const WAIT = 7;

interface Props {
  model: DatasetSharding;
  context: Context;
  /** On the axis of elements instead of that of steps. */
  byElement: boolean;
}

export function Chart({ model, context, byElement }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { left, right } = gutters(width);
  const room = width - left - (right && RIGHT);
  const { readers, together = [], progress, positions, remainder_text } = model;
  const rows = byElement ? readers : [...readers, ...together];
  const all = together.at(-1) ?? readers[0];
  const { first, last } = windowOf(model);
  const columns = columnsOf(model, byElement ? Infinity : room, usualOf(all));
  const waits = waitsOf(model, columns);
  const size = room / columns.length;
  const height = rows.length > FEW ? LOW_ROW : ROW;
  const tall = height - 3;
  const head = progress && !byElement ? 34 : 20;
  const top = head + (model.marks.length ? FILES : 0);
  const below = top + rows.length * height;
  const ends = !byElement && remainder_text && last === model.steps - 1;
  const rest = ends ? remainderOf(columns, all) : columns.length;
  const bracket = rest < columns.length;
  const fits = bracket && 6.2 * remainder_text!.length < left + room;
  const foot = below + (bracket ? (fits ? 26 : 8) : 0);
  const axis = stepsOf(progress?.sampled, context);
  const chosen = axis.range && batchesOf(model, axis.range);
  const pointed = axis.pointed === null ? null : { first: axis.pointed, last: axis.pointed };
  const meant = batchesOf(model, pointed);
  const marked = pointed ?? axis.range;
  const now = progress ? Math.max(...progress.steps) : -1;
  const most = Math.max(1, ...readers.map((reader) => reader.rows));
  const each = (columns.find((column) => column.first === first)?.last ?? first) - first + 1;
  const note = elementsNote(progress);
  const has = (batches: readonly number[], column: Span) => batches.some((batch) => isIn(column, batch));
  const atOf = ({ replica }: Reader) => (progress ? progress.steps[replica]! : Infinity);
  const labelOf = ({ label, replica }: Reader) => label ?? `replica ${replica}`;
  /** Where a reader's part of a column is: from x on, and its width. */
  const placesOf = (reader: Reader, column: number): (readonly [x: number, width: number])[] => {
    if (!byElement) return [[left + column * size, size - 2]];
    const unit = room / positions;
    const ranges = readingOf(reader, columns[column]!)?.ranges ?? [];
    return ranges.map(([from, to]) => [left + from * unit, Math.max(1, (to - from + 1) * unit)]);
  };

  const paint = (painting: Painting) => {
    const { canvas, palette, cursor } = painting;
    const write = (text: string, colour: string, x: number, y: number, width = room) => {
      canvas.textAlign = "center";
      canvas.fillStyle = colour;
      canvas.fillText(text, x, y, width);
      canvas.textAlign = "left";
    };
    const end = left + room;
    const sums = columns.map((column) => rowsOf(all!, column));
    const usual = usualOf(all);
    paintFiles(painting, model, left, end);
    paintEnd(painting, palette.quiet, byElement ? "element" : "step", left - 8, top - 9);
    paintEnd(painting, palette.quiet, "rows", end + 56, top - 9);
    if (!byElement)
      columns.forEach((column, index) => {
        const isNow = isIn(column, now);
        const middle = left + (index + 0.5) * size - 1;
        const text = spanText(column);
        if (isNow) {
          paintBox(painting, palette.accent, middle - size / 2, top - head, size, below - top + head, 0.12);
          write("now", palette.accent, middle, top - 24);
        }
        const fits = 6 * text.length < size;
        write(fits ? text : `${column.first}…`, isNow ? palette.accent : palette.quiet, middle, top - 9);
      });
    if (bracket) {
      const from = left + rest * size;
      paintLine(painting, palette.warning, 1.5, [
        [from, below - 1],
        [from, below + 4],
        [end - 2, below + 4],
        [end - 2, below - 1],
      ]);
      if (fits) paintEnd(painting, palette.warning, remainder_text!, end - 2, below + 16);
    }
    rows.forEach((reader, row) => {
      const y = top + row * height;
      const middle = y + tall / 2;
      const { replica, nothing } = reader;
      const isReplica = replica >= 0;
      const lit = strengthOf(context.selected, replica);
      const fullest = usualOf(reader);
      canvas.globalAlpha = lit;
      paintLabel(painting, { label: labelOf(reader), replica }, middle, !!nothing);
      const ink = nothing ? palette.error : palette.text;
      paintEnd(painting, ink, count(reader.rows), end + 56, middle, isReplica);
      if (isReplica)
        paintBox(painting, palette.replica(replica)!, end + 64, middle - 4, (60 * reader.rows) / most, 8);
      columns.forEach((column, index) => {
        const read = rowsOf(reader, column);
        const steps = column.last - column.first + 1;
        const share = read / steps / fullest;
        const isPart = share < 1 && sums[index]! < steps * usual;
        const place = (column.first - first) / (last - first || 1); // inside of the window
        const alpha = !chosen || has(chosen, column) ? lit : lit / 4;
        const text = count(byElement ? column.first : read);
        canvas.globalAlpha = alpha;
        for (const [x, width] of placesOf(reader, index)) {
          if (byElement) paintBox(painting, sequential(place), x, y, width, tall);
          else if (isReplica) {
            const filled = read && (isPart ? share * tall : tall);
            const strength = isPart ? 80 : atOf(reader) >= column.last ? READ : TO_COME;
            const colour = isPart ? palette.late : palette.communicate;
            paintBox(painting, palette.line, x, y, width, tall, 1 / 3);
            paintBox(painting, colour, x, y + tall - filled, width, filled, strength / 100);
          }
          if (!byElement && isReplica && isLong(waitIn(waits, replica, column))) {
            const strip = { x, y: y + tall - WAIT, width, height: WAIT };
            paintBox(painting, palette.wait, x, strip.y, width, WAIT);
            hatch(canvas, strip, palette.waitLine);
          }
          const ink = byElement
            ? textOn(place)
            : isReplica
              ? palette.text
              : isPart
                ? palette.warning
                : palette.quiet;
          if (!nothing && (!byElement || width > 7 * text.length))
            write(text, ink, x + width / 2, middle, width);
          if (has(meant, column) || (cursor?.row === row && cursor.column === index))
            paintCursor(painting, { x, y, width, height: tall });
        }
      });
      if (nothing) {
        const text = `✖ ${nothing}: it reads nothing`;
        const width = Math.min(room, 6.2 * text.length);
        canvas.globalAlpha = lit / 2;
        hatch(canvas, { x: left, y, width: room - 2, height: tall }, palette.quiet);
        canvas.globalAlpha = lit;
        paintBox(painting, palette.ground, left + (room - width) / 2, y, width, tall);
        write(text, palette.error, left + room / 2, middle);
        paintOutline(painting, palette.error, 1, left, y, room - 2, tall);
      }
      canvas.globalAlpha = 1;
    });
  };
  const at = (x: number, y: number): Cell => {
    const row = Math.floor((y - top) / height);
    const isThere = (_: Span, column: number) =>
      placesOf(rows[row]!, column).some(([from, width]) => x >= from && x <= from + width);
    return { row, column: rows[row] ? columns.findIndex(isThere) : -1 };
  };
  /** The step of the strategy for which a batch is read, or the closest known one. */
  const stepAt = (x: number) => {
    const place = clamped((x - left) / size, 0, columns.length - 0.001);
    const column = columns[Math.floor(place)]!;
    const batch = column.first + Math.floor((place % 1) * (column.last - column.first + 1));
    const { given, sampled } = progress!;
    return stepOf(model, clamped(batch, given - sampled!.steps.length, given - 1))!;
  };
  const describe = ({ row, column }: Cell) => {
    const [reader, steps] = [rows[row]!, columns[column]!];
    const read = rowsOf(reader, steps);
    const reading = readingOf(reader, steps);
    const wait = waitIn(waits, reader.replica, steps);
    return joined([
      `${labelOf(reader)} · ${rangeText(steps)}`,
      read ? joined([counted(read, "row"), reading?.text], ": ") : "nothing",
      reading?.text && note,
      wait && waitText(wait),
      reader.replica >= 0 && atOf(reader) === steps.last && "is here",
    ]);
  };
  const pick = (cell: Cell) => {
    const { replica } = rows[cell.row]!;
    axis.pick(stepOf(model, columns[cell.column]!.first), replica);
    const reading = readingOf(rows[cell.row]!, columns[cell.column]!);
    const step = reading?.hidden ? reading.step : -1;
    if (step >= 0 || model.listed) context.ask?.({ kind: "list", step, replica });
  };
  const lists = context.ask && readers.some(({ readings }) => readings.some(({ hidden }) => hidden));
  return (
    <div ref={box}>
      <Plane
        label={joined([model.summary, model.sentence, remainder_text])}
        hint={`what a replica reads in a step${lists ? ", a click for all its elements" : ""}`}
        rows={rows.length}
        columns={columns.length}
        height={foot + 2}
        paint={paint}
        at={at}
        describe={describe}
        onPick={pick}
        steps={axis}
        {...(progress?.sampled?.steps.length && {
          stepOf: ({ column }: Cell) => stepOf(model, columns[column]!.first),
          ...(!byElement && { stepAt }),
        })}
        said={marked ? readText(model, marked, pointed ? meant : chosen!) : ""}
      />
      {remainder_text && !fits && <Note>{remainder_text}</Note>}
      <div class="wb-legend">
        {byElement ? (
          <>
            step {first} <Ramp /> {last}
            {joined(["", model.steps > last - first + 1 && `of ${counted(model.steps, "step")}`, note])}
          </>
        ) : (
          <>
            <Key colour={shade(READ)} name={progress ? "read" : "rows of a replica"} />
            {progress && <Key colour={shade(TO_COME)} name="to come" />}
            <Key colour="var(--wb-late)" name="part of a batch" />
            {readers.some(({ replica }) =>
              columns.some((column) => isLong(waitIn(waits, replica, column))),
            ) && <Swatch kind="wait" name="waited for data" />}
            {each > 1 && `a cell: ${each} steps`}
          </>
        )}
      </div>
    </div>
  );
}

/** A colour in the strength in which it is painted, for the legend. */
function shade(part: number): string {
  return `color-mix(in srgb, var(--wb-communicate) ${part}%, var(--wb-ground))`;
}
