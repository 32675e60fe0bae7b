// Colours with a meaning. None is ever the only sign: each comes with an icon, a text or a hatching.
import { blended } from "./scale";

/** Okabe–Ito, for categories. Colour-blind people can distinguish them, too, on light and on dark ground. */
export const CATEGORIES = [
  "#0072B2",
  "#E69F00",
  "#009E73",
  "#CC79A7",
  "#56B4E9",
  "#D55E00",
  "#B8A800",
] as const;

/** For elements, even outside of a view; canvases have them in their palette. */
export const GOOD = "var(--wb-good, var(--jp-success-color0))";
export const WARNING = "var(--wb-warning, var(--jp-warn-color0))";
export const BAD = "var(--wb-error, var(--jp-error-color0))";
const CALM = "var(--wb-link, var(--jp-brand-color0))";

const OPS = ["all_reduce", "broadcast", "all_gather", "reduce_scatter", "barrier", "reduce", "send", "recv"];

/** The colour of category number `index`. */
export function category(index: number): string {
  return CATEGORIES[((index % CATEGORIES.length) + CATEGORIES.length) % CATEGORIES.length]!;
}

/** The colour of a collective operation, the same in every view. */
export function opColour(op: string): string {
  const index = OPS.indexOf(op);
  return category(index >= 0 ? index : OPS.length);
}

/** Viridis at 17 shares. Linear in between: no channel is off by more than 5 of 255. */
const VIRIDIS = (
  "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c " +
  "1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725"
).split(" ");

/** Viridis at a share from 0 to 1. */
export function sequential(share: number): string {
  return blended(VIRIDIS, share);
}

/** Black or white, whichever reads better on viridis at a share. */
export function textOn(share: number): string {
  return share > 0.55 ? "#000" : "#fff";
}

export interface Status {
  sign: string;
  colour: string;
}

const STATUS: Record<string, Status> = {
  starting: { sign: "○", colour: CALM },
  live: { sign: "●", colour: GOOD },
  stale: { sign: "◐", colour: WARNING },
  stalled: { sign: "◐", colour: WARNING },
  late: { sign: "▲", colour: WARNING },
  lost: { sign: "✖", colour: BAD },
  "not finite": { sign: "≠", colour: BAD },
  stopped: { sign: "■", colour: "currentColor" },
  replay: { sign: "▷", colour: CALM },
  recorded: { sign: "▷", colour: CALM },
  "in sync": { sign: "●", colour: GOOD },
  diverged: { sign: "✖", colour: BAD },
};

/** Sign and colour of a status word; the word itself is beside them. */
export function statusOf(word: string): Status {
  return STATUS[word] ?? { sign: "○", colour: "currentColor" };
}

const COLOURS = [
  "text",
  "quiet",
  "ground",
  "line",
  "accent",
  "warning",
  "error",
  "compute",
  "communicate",
  "late",
  "wait",
  "less",
  "more",
] as const;

/** Colours of the surroundings, for canvases. From the style sheet, so that themes decide. */
export interface Palette extends Record<(typeof COLOURS)[number], string> {
  waitLine: string;
  /** The colour of a replica, always beside its number; undefined if it is not a replica. */
  replica(number: number): string | undefined;
  /** From on time to the latest usual lateness. */
  lateness: readonly string[];
  font: string;
  strong: string;
  /** For the names of rows. */
  label: string;
}

export function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(`--wb-${name}`).trim();
  const all = (name: string, count: number) =>
    Array.from({ length: count }, (_, index) => read(`${name}-${index}`));
  const font = `${read("axis")} ${read("font")}`;
  const colours = Object.fromEntries(COLOURS.map((name) => [name, read(name)]));
  return {
    ...(colours as Record<(typeof COLOURS)[number], string>),
    waitLine: read("wait-line"),
    replica: (number) => colourOf(number, read),
    lateness: all("late", 6),
    font,
    strong: `600 ${font}`,
    label: `${read("label")} ${read("font")}`,
  };
}

/** This many replicas have colours that people distinguished by eye; the others' are computed. */
const CHOSEN = 8;
const LIGHTS = 3;

/**
 * The colour of a replica, unique and the same in every view. Hues and lightnesses distinguish 32 replicas, at 3:1 from
 * the ground; `read` returns what the theme makes of tokens.
 */
function colourOf(replica: number, read: (token: string) => string): string | undefined {
  if (!(replica >= 0)) return undefined;
  if (replica < CHOSEN) return read(`rank-${replica}`);
  return `hsl(${((105 + 104.01 * replica) % 360).toFixed(2)},60%,${read(`light-${replica % LIGHTS}`)})`;
}

/** The same for elements; grey if it is not a replica. */
export function replicaColour(replica: number): string {
  return colourOf(replica, (token) => `var(--wb-${token})`) ?? "var(--wb-ink-3)";
}
