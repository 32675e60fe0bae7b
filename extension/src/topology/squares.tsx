// Replicas, host by host: a square for each, with what it does or what stands out about it.
import { useRef } from "preact/hooks";
import { statusOf } from "../colours";
import { clamped } from "../scale";
import { count, counted, joined, known, memoryText, percent, runsOf } from "../format";
import type { Topology, WorkerNode } from "../models";
import {
  fitting,
  hatch,
  paintBox,
  paintCursor,
  paintOutline,
  paintText,
  type Painting,
  type Rectangle,
} from "../parts/painting";
import { Plane } from "../parts/plane";
import { Sign } from "../parts/status";
import { groupText } from "../parts/terms";
import { strengthOf } from "../selection";
import type { Context } from "../view";
import { GAP, NAME, layoutOf, NEWS, stateOf, STATES, type Layout, type Place, type Together } from "./places";

/** How high the picture is at least. */
const LEAST = 120;
/** Of more, none has its own colour: what stands out does so among quiet ones. */
const MOST_COLOURED = 32;
/** So many are told one by one. */
const MOST_NAMED = 8;
/** So wide squares have more than a number. */
const RICH = 88;
const LINE = 15;
/** In wider and higher squares texts are larger. */
const WIDE = 200;

interface Props {
  model: Topology;
  hosts: readonly Together[];
  context: Context;
}

export function Squares({ model, hosts, context }: Props) {
  const places = hosts.flatMap((host) => host.places);
  const most = Math.max(...hosts.map((host) => host.places.length));
  const greatest = Math.max(...places.map(({ replica }) => replica?.replica ?? 0));
  // By itself, and at most: a few replicas and their table take about two thirds of a tall pane.
  const usual = clamped(35 * places.length, 140, 300);
  const highest = clamped(150 * places.length, 720, 1600);
  const isLinked = hosts.length > 1 && model.strategies.some((strategy) => strategy.transport);
  const layout = useRef<Layout>();
  const { selected } = context;
  const paint = (painting: Painting) => {
    const { cursor, canvas, palette } = painting;
    const { across, columns, width, height, right, down } = (layout.current = layoutOf(
      painting,
      hosts,
      most,
    ));
    const gap = width > 12 ? 2 : 1;
    hosts.forEach((host, row) => {
      const left = (row % across) * right;
      const top = Math.floor(row / across) * down;
      canvas.font = palette.label;
      canvas.fillStyle = palette.text;
      canvas.fillText(host.name, left, top + NAME / 2, right - GAP);
      // The link to the next host.
      const from = canvas.measureText(host.name).width + 6;
      if (isLinked && from < right - 12)
        paintBox(painting, palette.quiet, left + from, top + NAME / 2, right - from - 6, 1);
      canvas.font = palette.font;
      // All of them or none: numbers of few digits alone would look like a choice.
      const isNumbered = canvas.measureText(String(greatest)).width < width - gap - 2;
      host.places.forEach((place, column) => {
        const replica = place.replica?.replica ?? -1;
        const box = {
          x: left + (column % columns) * width,
          y: top + NAME + Math.floor(column / columns) * height,
          width: width - gap,
          height: height - gap,
        };
        canvas.globalAlpha = strengthOf(selected, replica);
        paintPlace(painting, place, box, places.length <= MOST_COLOURED, isNumbered);
        canvas.globalAlpha = 1;
        if ((cursor?.row === row && cursor.column === column) || selected.replica === replica)
          paintCursor(painting, box);
      });
    });
  };
  return (
    <>
      <Plane
        label={`${counted(places.length, "replica")} on ${counted(model.hosts.length, "host")}`}
        hint="one replica, up and down: host · click or Enter: select it"
        rows={hosts.length}
        columns={most}
        height={0}
        rowHeights={[LEAST / hosts.length, usual / hosts.length, highest / hosts.length]}
        paint={paint}
        at={(x, y) => {
          const { across, columns, right, down, width, height } = layout.current!;
          const row = across * Math.floor(y / down) + Math.floor(x / right);
          const line = Math.floor(((y % down) - NAME) / height);
          const column = Math.floor((x % right) / width);
          return line < 0 || column >= columns ? null : { row, column: line * columns + column };
        }}
        describe={({ row, column }) => {
          const { name, places } = hosts[row]!;
          return places[column] ? placeText(places[column]) : `${name}: no more replicas`;
        }}
        onPick={({ row, column }) => context.select(hosts[row]!.places[column]?.replica?.replica ?? -1)}
      />
      <Legend places={places} status={model.status} />
      {places.length <= MOST_NAMED && <p class="wb-heard">{joined(places.map(placeText), "; ")}</p>}
    </>
  );
}

function paintPlace(
  painting: Painting,
  place: Place,
  box: Rectangle,
  coloured: boolean,
  isNumbered: boolean,
): void {
  const { canvas, palette } = painting;
  const { x, y, width, height } = box;
  const { worker, device, replica } = place;
  const state = stateOf(place);
  const isLate = state === "late";
  const grounds: Record<string, string> = {
    late: palette.late,
    "not finite": palette.error,
    busy: palette.compute,
    idle: palette.compute,
    stopped: palette.compute,
  };
  const ground = grounds[state];
  const strength = coloured ? 0.5 : 1;
  const news = NEWS.includes(state);
  const sign = news && statusOf(state).sign;
  if (ground)
    paintBox(painting, ground, x, y, width, height, news ? 1 : state === "busy" ? strength : strength / 2);
  else {
    if (news) hatch(canvas, box, palette.line);
    const colour = palette[!news ? "quiet" : state === "stale" ? "warning" : "error"];
    paintOutline(painting, colour, 1, x + 0.5, y + 0.5, width - 1, height - 1);
  }
  const own = coloured && replica && palette.replica(replica.replica);
  if (own) paintBox(painting, own, x, y, 4, height);
  if (isLate) paintBox(painting, palette.warning, x, y + height - 3, width, 3);

  // As much of what is known as there is room for.
  const ink = isLate ? "#000" : news && ground ? palette.ground : palette.text;
  const number = replica && String(replica.replica);
  if (width < RICH || height < RICH / 2) {
    const text = joined([sign, isNumbered && number], " ");
    const short = canvas.measureText(text).width < width - 2 ? text : sign || "";
    if (height > 13) paintText(painting, ink, short, x + width / 2, y + height / 2, "center");
    return;
  }
  const doing = doingOf(place)?.replaceAll(/: |, | at /g, "\n");
  const name = joined([sign, number ? `replica ${number}` : "no replica"], " ");
  const said = [name, saidState(place), worker.detail, device?.name, doing, busyText(place)];
  const lines = joined([...said, `worker ${worker.name}`, processText(worker)], "\n").split("\n");
  const zoom = clamped(Math.min(width, height) / WIDE, 1, 2);
  const font = palette.font.replace(/[\d.]+/, (size) => String(zoom * Number(size)));
  const large = { canvas, palette: { ...palette, font, strong: `600 ${font}` } };
  canvas.font = font;
  for (const [index, line] of lines.slice(0, Math.floor((height - 6) / LINE / zoom)).entries()) {
    const text = fitting(canvas, line, width - 18);
    paintText(large, ink, text, x + 11, y + (14 + index * LINE) * zoom, "left", index === 0);
  }
  canvas.font = palette.font;
}

/** All that is known of a place. */
function placeText(place: Place): string {
  const { host, worker, device, replica } = place;
  const state = stateOf(place);
  return joined([
    replica ? `replica ${replica.replica} of ${groupText(replica.group)}` : "no replica",
    `${host}, worker ${worker.name}${device ? `, ${device.name}` : ""}`,
    joined([NEWS.includes(state) && statusOf(state).sign, saidState(place)], " "),
    worker.detail || doingOf(place),
    busyText(place),
    processText(worker),
  ]);
}

/** Its state where that is not seen from the rest: what is busy does something, and that a run has stopped is said once of all. */
function saidState(place: Place): string {
  const state = stateOf(place);
  return state === "busy" || state === "stopped" ? "" : state;
}

/** What it does, if that is more than its state. */
function doingOf(place: Place): string | undefined {
  return place.replica?.doing === saidState(place) ? "" : place.replica?.doing;
}

function processText({ pid, memory_bytes }: WorkerNode): string {
  return joined([`pid ${pid}`, memory_bytes !== null && memoryText(memory_bytes)]);
}

function busyText({ replica }: Place): string {
  return replica?.busy_share == null ? "" : `busy ${percent(100 * replica.busy_share)}`;
}

/** How many are in which state, and which ones those are that stand out. */
function Legend({ places, status }: { places: readonly Place[]; status: string }) {
  return (
    <div class="wb-legend">
      {STATES.map((state) => {
        const those = places.filter((place) => stateOf(place) === state);
        const named = known(those.map(({ replica }) => replica?.replica ?? null));
        const isNews = NEWS.includes(state);
        return (
          those.length > 0 &&
          (isNews || state !== status) && (
            <span key={state}>
              {isNews && <Sign {...statusOf(state)} />} {count(those.length)} {state}
              {isNews && `: ${runsOf(named.slice(0, MOST_NAMED))}${named.length > MOST_NAMED ? " …" : ""}`}
            </span>
          )
        );
      })}
    </div>
  );
}
