// A view as a picture: SVG of plain shapes and text, which every program reads, drawn from the page; or that as PNG.
import type { drawings } from "../parts/painting";
import { vectorOf } from "./svg_canvas";
import { element, escaped } from "./xml";

const MARGIN = 10;
const PIXELS = 2; // per CSS pixel of a PNG
const LEFT_OUT = ".wb-export, .wb-hint, .wb-head button, .wb-folded, .wb-tabs, .wb-form, script, style";
const INHERITED = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
] as const;

export interface Picture {
  width: number;
  height: number;
  markup: string;
}

/** What an element shows now, without its buttons. */
export function pictureOf(root: HTMLElement, charts: typeof drawings): Picture {
  const box = root.getBoundingClientRect();
  const width = Math.ceil(box.width) + 2 * MARGIN;
  const height = Math.ceil(box.height) + 2 * MARGIN;
  const painter = new Painter(charts, box.left - MARGIN, box.top - MARGIN);
  const ground = element("rect", { width, height, fill: groundOf(root) });
  const markup = element(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
    ground + painter.of(root),
  );
  return { width, height, markup };
}

/** The picture in pixels, two for each of CSS. */
export async function pngOf({ width, height, markup }: Picture): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = PIXELS * width;
  canvas.height = PIXELS * height;
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large"))),
      "image/png",
    );
  });
}

class Painter {
  #clips = 0;
  readonly #text = document.createElement("canvas").getContext("2d")!;

  constructor(
    private readonly charts: typeof drawings,
    private readonly left: number,
    private readonly top: number,
  ) {}

  of(node: Element): string {
    if (node.matches(LEFT_OUT)) return "";
    const style = getComputedStyle(node);
    const box = this.#at(node.getBoundingClientRect());
    if (style.display === "none" || style.visibility === "hidden") return "";
    const inside = this.#frame(box, style) + this.#inside(node, box, style);
    return inside && Number(style.opacity) < 1
      ? element("g", { opacity: Number(style.opacity) }, inside)
      : inside;
  }

  #inside(node: Element, box: DOMRect, style: CSSStyleDeclaration): string {
    if (node instanceof HTMLCanvasElement) return this.#canvas(node, box, style);
    if (node instanceof SVGSVGElement) return svgOf(node, box);
    if (node instanceof HTMLSelectElement)
      return this.#chosen(node.selectedOptions[0]?.text ?? "", box, style);
    if (node instanceof HTMLInputElement) return this.#chosen(node.value, box, style);
    const parts = [...node.childNodes].map((child) => {
      if (child instanceof Element) return this.of(child);
      return child instanceof Text ? this.#lines(child, style) : "";
    });
    const inside = parts.join("");
    if (!inside || style.overflowX === "visible") return inside;
    this.#clips += 1;
    const id = `wb-box-${this.#clips}`;
    const { x, y, width, height } = box;
    return (
      element("clipPath", { id }, element("rect", { x, y, width, height })) +
      element("g", { "clip-path": `url(#${id})` }, inside)
    );
  }

  #frame({ x, y, width, height }: DOMRect, style: CSSStyleDeclaration): string {
    if (!width || !height) return "";
    const rx = parseFloat(style.borderTopLeftRadius) || undefined;
    const fill = seen(style.backgroundColor) ? style.backgroundColor : "none";
    const sides = (["Top", "Right", "Bottom", "Left"] as const).map((side) => ({
      size: style[`border${side}Style`] === "none" ? 0 : parseFloat(style[`border${side}Width`]),
      colour: style[`border${side}Color`],
    }));
    const [top, right, bottom, left] = sides as [Side, Side, Side, Side];
    const alike = sides.every((side) => side.size === top.size && side.colour === top.colour);
    let markup = "";
    if (alike && top.size) {
      const half = top.size / 2;
      const inner = { x: x + half, y: y + half, width: width - top.size, height: height - top.size };
      markup = element("rect", { ...inner, rx, fill, stroke: top.colour, "stroke-width": top.size });
    } else {
      if (fill !== "none") markup = element("rect", { x, y, width, height, rx, fill });
      const bar = (side: Side, place: Record<string, number>) =>
        side.size && seen(side.colour) ? element("rect", { ...place, fill: side.colour }) : "";
      markup += bar(top, { x, y, width, height: top.size });
      markup += bar(bottom, { x, y: y + height - bottom.size, width, height: bottom.size });
      markup += bar(left, { x, y, width: left.size, height });
      markup += bar(right, { x: x + width - right.size, y, width: right.size, height });
    }
    if (style.outlineStyle === "dashed") {
      const line = { stroke: style.outlineColor, "stroke-width": parseFloat(style.outlineWidth) };
      markup += element("rect", {
        x,
        y,
        width,
        height,
        rx,
        fill: "none",
        ...line,
        "stroke-dasharray": "6 4",
      });
    }
    return markup;
  }

  /** A text node, with the line breaks that it has on the page. */
  #lines(node: Text, style: CSSStyleDeclaration): string {
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter((box) => box.width > 0);
    if (boxes.length < 2) return boxes[0] ? this.#line(node.data, this.#at(boxes[0]), style) : "";
    const lines = new Map<number, { text: string; box: DOMRect }>();
    for (const { index, 0: word } of node.data.matchAll(/\s*\S+/g)) {
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const box = [...range.getClientRects()].at(-1);
      if (!box) continue;
      const before = lines.get(Math.round(box.top));
      const left = before?.box.left ?? box.left;
      lines.set(Math.round(box.top), {
        text: (before?.text ?? "") + word,
        box: new DOMRect(left, box.top, box.right - left, box.height),
      });
    }
    return [...lines.values()].map(({ text, box }) => this.#line(text, this.#at(box), style)).join("");
  }

  #chosen(text: string, box: DOMRect, style: CSSStyleDeclaration): string {
    this.#text.font = style.font;
    const { width } = this.#text.measureText(text);
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.borderLeftWidth);
    const size = 1.2 * parseFloat(style.fontSize);
    return this.#line(
      text,
      new DOMRect(box.x + padding, box.y + (box.height - size) / 2, width, size),
      style,
    );
  }

  #line(text: string, { x, y, width, height }: DOMRect, style: CSSStyleDeclaration): string {
    if (!text.trim()) return "";
    this.#text.font = style.font;
    const shown = style.whiteSpace.startsWith("pre") ? text : this.#collapsed(text, width);
    const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = this.#text.measureText(shown);
    return element(
      "text",
      {
        x,
        y: y + (height * up) / (up + down || 1),
        fill: style.color,
        "font-family": style.fontFamily,
        "font-size": style.fontSize,
        "font-weight": style.fontWeight === "400" ? undefined : style.fontWeight,
        "xml:space": "preserve",
        textLength: width, // as wide as here, even if the font is another one
        lengthAdjust: "spacingAndGlyphs",
      },
      escaped(shown),
    );
  }

  /** With single spaces. Keeps those at the ends that are visible, which the width shows. */
  #collapsed(text: string, width: number): string {
    const inner = text.trim().replace(/\s+/g, " ");
    const away = (one: string) => Math.abs(this.#text.measureText(one).width - width);
    return [inner, ` ${inner}`, `${inner} `, ` ${inner} `].reduce((best, one) =>
      away(one) < away(best) ? one : best,
    );
  }

  #canvas(canvas: HTMLCanvasElement, { x, y, width, height }: DOMRect, style: CSSStyleDeclaration): string {
    const draw = this.charts.get(canvas);
    const vector = draw ? vectorOf(draw) : null;
    if (vector === null) return element("image", { x, y, width, height, href: canvas.toDataURL() });
    const font = { "font-family": style.fontFamily, "font-size": "11px" };
    return element("g", { transform: `translate(${x} ${y})`, ...font }, vector);
  }

  #at(box: DOMRect): DOMRect {
    return new DOMRect(box.x - this.left, box.y - this.top, box.width, box.height);
  }
}

interface Side {
  size: number;
  colour: string;
}

/** A copy with its style in attributes, because a file has no style sheet. */
function svgOf(svg: SVGSVGElement, { x, y, width, height }: DOMRect): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const copies = [copy, ...copy.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((original, index) => {
    const style = getComputedStyle(original);
    const target = copies[index]!;
    for (const name of [...target.getAttributeNames()]) {
      if (name === "class" || name === "style" || name.startsWith("aria-") || name === "role")
        target.removeAttribute(name);
    }
    for (const name of INHERITED) {
      const value = style.getPropertyValue(name);
      if (value && value !== "none" && value !== "normal") target.setAttribute(name, value);
      else if (name === "fill" && value === "none") target.setAttribute(name, "none");
    }
  });
  for (const [name, value] of Object.entries({ x, y, width, height })) copy.setAttribute(name, String(value));
  return new XMLSerializer().serializeToString(copy);
}

function seen(colour: string): boolean {
  return colour !== "transparent" && !/,\s*0\)$|\/\s*0\)$/.test(colour);
}

/** The colour behind an element. */
function groundOf(node: Element | null): string {
  for (let at = node; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (seen(colour)) return colour;
  }
  return "#fff";
}
