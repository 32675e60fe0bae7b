// An array to scale, and which device holds which part.
import { useRef, useState } from "preact/hooks";
import { replicaColour, WARNING } from "../colours";
import { ChartOrTable } from "../parts/head";
import { ReplicaName } from "../parts/marks";
import { named, numeric, replicaOf, selecting, Table, type Column } from "../parts/table";
import { chartOf } from "../parts/plane";
import { Sign } from "../parts/status";
import { wording } from "../parts/terms";
import { useRoom, widthOf } from "../parts/width";
import { ascending, count, counted, dtypeText, NOTHING, percent, runsOf, sizeText, joined } from "../format";
import type { ArrayPart, ArraySharding } from "../models";
import { clamped } from "../scale";
import { FADED } from "../selection";
import type { Context, View } from "../view";
import { Button } from "../parts/small";

const BESIDE = 60;
const FOOT = 24;
/** In a pane. */
const [LEAST, USUAL, MOST] = [160, 320, 640];
const MIN_SIDE = 36;
const MAX_BLOCKS = 64;
const MAX_NAMED = 16;
const MAX_SHEETS = 6;
/** Part of the replicas; without a size that this many share, no size is usual. */
const FEW = 0.25;
const SHEET = 5;

export const arraySharding: View<ArraySharding> = {
  title: "Array sharding",
  draw(shown) {
    const { model } = shown;
    return (
      <ChartOrTable
        title={joined([model.kind, model.name], " ")}
        facts={[
          `${dtypeText(model.dtype)}[${model.shape.join(",")}]`,
          sizeText(model.size_bytes),
          model.sentence,
          model.imbalance_percent > 0 &&
            `▲ fullest device ${percent(model.imbalance_percent)} above the average`,
        ]}
        chart={<Picture {...shown} />}
        table={<Twin {...shown} />}
      />
    );
  },
};

interface Block {
  key: string;
  /** All that hold it; if there are several, they are copies. */
  holders: ArrayPart[];
  start: number[];
  stop: number[];
}

/** The different blocks of the array at one index of the axes that are not drawn, each with its holders. */
export function blocksOf(parts: readonly ArrayPart[], place: readonly number[]): Block[] {
  const blocks = new Map<string, Block>();
  for (const part of parts) {
    const outside = place.some((index, axis) => index < part.start[axis]! || index >= part.stop[axis]!);
    if (outside) continue;
    const start = part.start.slice(place.length);
    const stop = part.stop.slice(place.length);
    const key = `${start.join()}:${stop.join()}`;
    const block = blocks.get(key);
    if (block) block.holders.push(part);
    else blocks.set(key, { key, holders: [part], start, stop });
  }
  return [...blocks.values()];
}

function Picture({ model, context }: { model: ArraySharding; context: Context }) {
  const { shape, parts } = model;
  const [places, setPlaces] = useState<number[]>([]);
  const sliders = Math.max(0, shape.length - 2);
  const place = shape.slice(0, sliders).map((size, axis) => Math.min(places[axis] ?? 0, size - 1));
  const rows = shape.length > 1 ? shape[shape.length - 2]! : 1;
  const columns = shape.length > 0 ? shape[shape.length - 1]! : 1;
  // To scale while both sides remain visible.
  const box = useRef<HTMLDivElement>(null);
  const inside = useRoom(box);
  const room = widthOf(inside) - BESIDE;
  const flat = shape.length < 2;
  const full = room / Math.max(1, columns);
  // A bar is as high as there is room, while the rows of the table have theirs.
  const sides = flat
    ? [MIN_SIDE, MIN_SIDE, clamped(MOST - 16 * parts.length, MIN_SIDE, MOST)]
    : [LEAST, USUAL, MOST].map((most) => clamped(rows * full, MIN_SIDE, most));
  const heights = sides.map((side) => FOOT + side);
  const scale = flat ? full : Math.min(full, ((inside.height || heights[1]!) - FOOT) / Math.max(1, rows));
  const width = clamped(columns * scale, MIN_SIDE, room);
  const height = Math.max(MIN_SIDE, flat ? (inside.height || heights[1]!) - FOOT : rows * scale);
  const distorted = shape.length > 1 && (columns * scale < MIN_SIDE || rows * scale < MIN_SIDE);
  const blocks = blocksOf(parts, place);
  const many = blocks.length > MAX_BLOCKS;
  const named = blocks.slice(0, MAX_NAMED).map((block) => blockText(block));
  const more = blocks.length > MAX_NAMED ? `; and ${blocks.length - MAX_NAMED} more blocks` : "";
  return (
    <>
      {place.map((index, axis) => (
        <label key={axis} class="wb-form">
          axis {axis}
          <input
            type="range"
            min={0}
            max={shape[axis]! - 1}
            value={index}
            onInput={(event) => {
              const next = [...place];
              next[axis] = Number(event.currentTarget.value);
              setPlaces(next);
            }}
          />
          <span>{index}</span>
        </label>
      ))}
      <div {...chartOf(heights)} ref={box}>
        <svg
          viewBox={`0 0 ${width + BESIDE} ${height + FOOT}`}
          style={{ maxWidth: `${width + BESIDE}px` }}
          role="img"
          aria-label={`${model.sentence}: ${named.join("; ")}${more}`}
        >
          {many ? (
            <ManyBlocks blocks={blocks} {...{ rows, columns, width, height, context }} />
          ) : (
            blocks.map((block) => (
              <BlockShape key={block.key} block={block} {...{ rows, columns, width, height, context }} />
            ))
          )}
          <text x={0} y={height + 16}>
            {shape.length ? `axis ${shape.length - 1}: ${count(columns)}` : "one number"}
          </text>
          {shape.length > 1 && (
            <text x={width + 6} y={height / 2 + 4}>
              {count(rows)}
            </text>
          )}
        </svg>
      </div>
      <div class="wb-legend">
        <Holders parts={parts} context={context} />
        {distorted && <span>not to scale: one side is too thin</span>}
        {many && <span>{count(blocks.length)} blocks: the table has their slices</span>}
      </div>
    </>
  );
}

interface Scale {
  rows: number;
  columns: number;
  width: number;
  height: number;
}

/** Where to draw a block. */
function sidesOf({ start, stop }: Block, { rows, columns, width, height }: Scale) {
  const one = start.length < 2;
  return {
    top: one ? 0 : (start[0]! / rows) * height,
    bottom: one ? height : (stop[0]! / rows) * height,
    left: ((start.at(-1) ?? 0) / Math.max(1, columns)) * width,
    right: ((stop.at(-1) ?? columns) / Math.max(1, columns)) * width,
  };
}

/**
 * More blocks than should have an element each: paths for neighbours, for unusual sizes, and for the selected replica.
 */
function ManyBlocks({ blocks, context, ...scale }: Scale & { blocks: readonly Block[]; context: Context }) {
  const selected = context.selected.replica;
  const unusual = unusualOf(blocks.map((block) => block.holders[0]!));
  const fills = [grey(0.25), grey(0.5), WARNING];
  const paths = fills.map(() => "");
  let chosen = "";
  for (const block of blocks) {
    const { top, bottom, left, right } = sidesOf(block, scale);
    const path = `M${left.toFixed(2)} ${top.toFixed(2)}H${right.toFixed(2)}V${bottom.toFixed(2)}H${left.toFixed(2)}Z`;
    const [holder] = block.holders;
    const kind = unusual.includes(holder!) ? 2 : holder!.replica % 2;
    paths[kind] = paths[kind]! + path;
    if (block.holders.some((part) => part.replica === selected)) chosen += path;
  }
  const pick = (event: MouseEvent) => {
    const corner = (event.currentTarget as Element).getBoundingClientRect();
    const x = ((event.clientX - corner.left) / corner.width) * scale.width;
    const y = ((event.clientY - corner.top) / corner.height) * scale.height;
    const block = blocks.find((one) => {
      const { top, bottom, left, right } = sidesOf(one, scale);
      return x >= left && x < right && y >= top && y < bottom;
    });
    if (block) context.select(block.holders[0]!.replica);
  };
  return (
    <g onClick={pick}>
      {fills.map((fill, index) => (
        <path key={fill} d={paths[index]} fill={fill} opacity={chosen ? FADED : 1} />
      ))}
      <rect
        width={scale.width}
        height={scale.height}
        fill="none"
        stroke="var(--wb-text)"
        pointer-events="none"
      />
      {chosen && <path d={chosen} fill="var(--wb-text)" stroke="var(--wb-text)" stroke-width="2" />}
    </g>
  );
}

function BlockShape({ block, context, ...scale }: Scale & { block: Block; context: Context }) {
  const { top, bottom, left, right } = sidesOf(block, scale);
  const replicas = block.holders.map((part) => part.replica);
  const selected = context.selected.replica;
  const lit = selected === null || replicas.includes(selected);
  const inside = Math.min(right - left, bottom - top);
  const sheets = block.holders.slice(0, clamped(Math.floor(inside / (3 * SHEET)), 1, MAX_SHEETS));
  const behind = SHEET * (sheets.length - 1); // copies overlap like sheets of paper
  const numbers = runsOf(replicas);
  const room = right - left - behind;
  // The buttons below say what a bare number stands for.
  const text = [wording(`replica${replicas.length > 1 ? "s" : ""} ${numbers}`, `r${numbers}`), numbers].find(
    (one) => 7 * one.length < room,
  );
  return (
    <g opacity={lit ? 1 : FADED} onClick={() => context.select(replicas[0]!)}>
      {sheets.map((part, index) => {
        const box = {
          x: left + index * SHEET + 0.5,
          y: top + (sheets.length - 1 - index) * SHEET + 0.5,
          width: Math.max(0.5, right - left - behind),
          height: Math.max(0.5, bottom - top - behind),
        };
        const chosen = part.replica === selected;
        return (
          <g key={part.replica}>
            <rect {...box} fill="var(--wb-ground)" />
            <rect
              {...box}
              fill={replicaColour(part.replica)}
              fill-opacity="0.35"
              stroke="var(--wb-text)"
              stroke-width={chosen ? 2.5 : 1}
            />
          </g>
        );
      })}
      {bottom - top > 12 && text && (
        <text
          class="wb-strong"
          x={(left + right + behind) / 2}
          y={(top + bottom - behind) / 2 + 4}
          text-anchor="middle"
        >
          {text}
        </text>
      )}
    </g>
  );
}

/** A neutral colour of this strength. */
function grey(strength: number): string {
  return `color-mix(in srgb, var(--wb-ink-3) ${100 * strength}%, var(--wb-ground))`;
}

/** The parts whose size differs from that of most. */
function unusualOf(parts: readonly ArrayPart[]): ArrayPart[] {
  const usual = usualOf(parts);
  const unusual = parts.filter((part) => part.size_bytes !== usual);
  return unusual.length > FEW * parts.length ? [] : unusual;
}

function usualOf(parts: readonly ArrayPart[]): number {
  return ascending(parts.map((part) => part.size_bytes))[parts.length >> 1]!;
}

/** Who holds what: all parts if they are few, otherwise those of unusual size. */
function Holders({ parts, context }: { parts: readonly ArrayPart[]; context: Context }) {
  const many = parts.length > MAX_BLOCKS;
  const shown = (many ? unusualOf(parts) : parts).slice(0, MAX_NAMED);
  const rest = parts.length - shown.length;
  return (
    <>
      {shown.map((part) => (
        <Button
          key={part.replica}
          aria-pressed={context.selected.replica === part.replica}
          onClick={() => context.select(part.replica)}
        >
          {many && <Sign />}
          <ReplicaName replica={part.replica} /> {placeOf(part)} · {sizeText(part.size_bytes)}
        </Button>
      ))}
      {rest > 0 && (
        <span>
          {shown.length > 0 && "… and "}
          {counted(rest, "replica")}, most with {sizeText(usualOf(parts))}: see the table
        </span>
      )}
    </>
  );
}

function placeOf({ host, device }: ArrayPart): string {
  return joined([host, device], ":");
}

function blockText(block: Block): string {
  return `${sliceText(block.start, block.stop)} on replica ${runsOf(block.holders.map((part) => part.replica))}`;
}

function sliceText(start: readonly number[], stop: readonly number[]): string {
  return `[${start.map((first, axis) => `${first}:${stop[axis]}`).join(", ")}]`;
}

function Twin({ model, context }: { model: ArraySharding; context: Context }) {
  const columns: Column<ArrayPart>[] = [
    numeric("replica", (part) => part.replica),
    named("host:device", (part) => placeOf(part) || NOTHING, {
      rank: 2,
      least: 90,
    }),
    named("slice", (part) => sliceText(part.start, part.stop), {
      least: 90,
      help: "start:stop of each axis",
    }),
    named("shape", (part) => `(${part.start.map((first, axis) => part.stop[axis]! - first).join(", ")})`, {
      rank: 1,
      least: 80,
    }),
    numeric("size", (part) => part.size_bytes, sizeText),
  ];
  return (
    <Table
      label="Who holds which slice"
      columns={columns}
      rows={model.parts}
      keyOf={(part) => `${part.replica} ${part.start.join()}`}
      {...selecting(context, replicaOf)}
    />
  );
}
