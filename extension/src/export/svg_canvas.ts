// A canvas that writes SVG: charts draw lines and text on it instead of pixels.
import { element, escaped, short } from "./xml";

const STYLE = {
  fillStyle: "#000",
  strokeStyle: "#000",
  lineWidth: 1,
  globalAlpha: 1,
  textAlign: "left",
  font: "",
  dash: "",
  clipPath: "",
};
const ANCHORS: Record<string, string> = { center: "middle", right: "end", end: "end" };
let clips = 0;

/** The part of a canvas that charts use, with the text baseline in the middle; any other call is an error. */
class SvgCanvas {
  now = { ...STYLE };
  parts: string[] = [];
  #path = "";
  #kept: (typeof STYLE)[] = [];

  beginPath(): void {
    this.#path = "";
  }

  moveTo(x: number, y: number): void {
    this.#path += `M${short(x)} ${short(y)}`;
  }

  lineTo(x: number, y: number): void {
    this.#path += `L${short(x)} ${short(y)}`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.#path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}Z`;
  }

  /** A whole circle: charts draw no other arcs. */
  arc(x: number, y: number, radius: number): void {
    const r = short(radius);
    this.#path += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${short(2 * radius)} 0a${r} ${r} 0 1 0 ${short(-2 * radius)} 0Z`;
  }

  fill(): void {
    this.#add("path", { d: this.#path, fill: this.now.fillStyle });
  }

  /** About the width in most fonts: charts only ask whether labels have room. */
  measureText(text: string): { width: number } {
    return { width: 6 * text.length };
  }

  stroke(): void {
    this.#add("path", { d: this.#path, fill: "none", ...this.#line() });
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.#add("rect", { x, y, width, height, fill: this.now.fillStyle });
  }

  strokeRect(x: number, y: number, width: number, height: number): void {
    this.#add("rect", { x, y, width: Math.max(0, width), height, fill: "none", ...this.#line() });
  }

  fillText(text: string, x: number, y: number): void {
    const place = { x, y, "dominant-baseline": "central", "text-anchor": ANCHORS[this.now.textAlign] };
    const weight = this.now.font.startsWith("600 ") ? 600 : undefined;
    this.#add("text", { ...place, fill: this.now.fillStyle, "font-weight": weight }, escaped(text));
  }

  setLineDash(lengths: number[]): void {
    this.now.dash = lengths.join(" ");
  }

  clip(): void {
    clips += 1;
    const id = `wb-clip-${clips}`;
    const outer = this.now.clipPath || undefined;
    this.parts.push(element("clipPath", { id, "clip-path": outer }, element("path", { d: this.#path })));
    this.now.clipPath = `url(#${id})`;
  }

  save(): void {
    this.#kept.push({ ...this.now });
  }

  restore(): void {
    this.now = this.#kept.pop() ?? this.now;
  }

  #line() {
    const { strokeStyle, lineWidth, dash } = this.now;
    return { stroke: strokeStyle, "stroke-width": lineWidth, "stroke-dasharray": dash };
  }

  #add(name: string, attributes: Record<string, string | number | undefined>, inside = ""): void {
    const { globalAlpha, clipPath } = this.now;
    const opacity = globalAlpha < 1 ? globalAlpha : undefined;
    this.parts.push(element(name, { ...attributes, opacity, "clip-path": clipPath }, inside));
  }
}

/** A chart as SVG in the coordinates of its canvas; null if only a canvas can draw it. */
export function vectorOf(draw: (context: CanvasRenderingContext2D) => void): string | null {
  const svg = new SvgCanvas();
  const context = new Proxy(svg, {
    get(target, name) {
      const found = Reflect.get(name in target.now ? target.now : target, name) as unknown;
      if (found === undefined) throw new TypeError(`no ${String(name)} in SVG`);
      return typeof found === "function" ? (found.bind(target) as unknown) : found;
    },
    set(target, name, value) {
      if (!(name in target.now)) throw new TypeError(`no ${String(name)} in SVG`);
      return Reflect.set(target.now, name, value);
    },
  });
  try {
    draw(context as unknown as CanvasRenderingContext2D);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
  return svg.parts.join("");
}
