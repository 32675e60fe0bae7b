// Colours with a meaning. None of them is ever the only sign: each comes with an icon, a text or a hatching.
import { scaleLinear } from "d3-scale";

/** Okabe–Ito, for categories, told apart by colour-blind people too; on light and on dark ground. */
export const CATEGORIES = [
  "#0072B2",
  "#E69F00",
  "#009E73",
  "#CC79A7",
  "#56B4E9",
  "#D55E00",
  "#B8A800",
] as const;

export const GOOD = "#009E73";
export const WARNING = "#E69F00";
export const BAD = "#D55E00";

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

/** Viridis at 17 shares; between them it is nearly a line: no channel is off by more than 5 of 255. */
const VIRIDIS = (
  "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c " +
  "1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725"
)
  .split(" ")
  .map((colour) => `#${colour}`);
const viridis = scaleLinear<string>()
  .domain(VIRIDIS.map((_, index) => index / (VIRIDIS.length - 1)))
  .range(VIRIDIS)
  .clamp(true);

/** Viridis at a share from 0 to 1. */
export function sequential(share: number): string {
  return viridis(share);
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
  starting: { sign: "○", colour: "#0072B2" },
  live: { sign: "●", colour: GOOD },
  stale: { sign: "◐", colour: WARNING },
  stalled: { sign: "◐", colour: BAD },
  lost: { sign: "✖", colour: BAD },
  stopped: { sign: "■", colour: "currentColor" },
  replay: { sign: "▷", colour: "#0072B2" },
  recorded: { sign: "▷", colour: "#0072B2" },
  "in sync": { sign: "●", colour: GOOD },
  diverged: { sign: "✖", colour: BAD },
};

/** Sign and colour of a status word; the word itself stands beside them. */
export function statusOf(word: string): Status {
  return STATUS[word] ?? { sign: "○", colour: "currentColor" };
}

/** Signs of how loudly an event is shown. */
export const SEVERITY: Record<string, Status> = {
  info: { sign: "·", colour: "currentColor" },
  warning: { sign: "▲", colour: WARNING },
  error: { sign: "✖", colour: BAD },
};

/** Colours of the surroundings, for canvases; from the style sheet, so that themes decide. */
export interface Palette {
  text: string;
  quiet: string;
  ground: string;
  line: string;
  accent: string;
  font: string;
}

export function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element);
  const read = (name: string, otherwise: string) => style.getPropertyValue(name).trim() || otherwise;
  return {
    text: read("--wb-text", "#111"),
    quiet: read("--wb-quiet", "#666"),
    ground: read("--wb-ground", "#fff"),
    line: read("--wb-line", "#ccc"),
    accent: read("--wb-accent", "#1976d2"),
    font: `11px ${read("--wb-font", "sans-serif")}`,
  };
}
