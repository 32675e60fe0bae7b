// A page to mount views in. What canvases would draw is kept as text: happy-dom draws nothing.
import { afterEach } from "node:test";
import { Window } from "happy-dom";
import { REPAINT_MS } from "../src/frames";
import type { Models } from "../src/models";
import type { Options } from "../src/mount";
import type { ViewName } from "../src/views";

const window = new Window({ url: "http://localhost/", width: 1000, height: 800 });
export const written: string[] = [];
/** The texts that may be squeezed, and into how many pixels. */
export const rooms = new Map<string, number>();

function canvasContext(): unknown {
  const kept: Record<string, unknown> = {};
  return new Proxy(kept, {
    get(target, name) {
      if (name === "fillText") {
        return (text: string, _x: number, _y: number, maxWidth?: number) => {
          written.push(text);
          if (maxWidth !== undefined) rooms.set(text, maxWidth);
        };
      }
      if (name === "measureText") return (text: string) => ({ width: 6 * text.length });
      return name in target ? target[name as string] : () => undefined;
    },
  });
}

const names = [
  "document",
  "HTMLElement",
  "ShadowRoot",
  "MutationObserver",
  "ResizeObserver",
  "IntersectionObserver",
];
for (const name of [
  ...names,
  "getComputedStyle",
  "matchMedia",
  "requestAnimationFrame",
  "cancelAnimationFrame",
  "Node",
  "Event",
  "KeyboardEvent",
  "CustomEvent",
]) {
  Object.defineProperty(globalThis, name, { value: Reflect.get(window, name), configurable: true });
}
Object.defineProperty(globalThis, "window", { value: window, configurable: true });
Reflect.set(window.HTMLCanvasElement.prototype, "getContext", canvasContext);

const { mount } = await import("../src/mount");

const open = new Set<() => void>();
afterEach(() => {
  for (const unmount of open) unmount(); // or what moves by itself would keep the process alive
  open.clear();
});

export interface Shown<K extends ViewName> {
  root: HTMLElement;
  update(model: Models[K]): Promise<void>;
  unmount(): void;
}

/** Mounts a view; `root` is what it drew. */
export function show<K extends ViewName>(name: K, model: Models[K], options: Options = {}): Shown<K> {
  const place = document.createElement("div");
  document.body.append(place);
  const mounted = mount(name, place, model, options);
  open.add(() => mounted.unmount());
  return {
    root: place,
    async update(next) {
      mounted.update(next);
      await settled();
    },
    unmount: () => mounted.unmount(),
  };
}

/**
 * After the next repaint, its effects, and what they change. Waits for frames, not for a time: those of a process that
 * stood still come late, but in their order.
 */
export async function settled(): Promise<void> {
  await after(1.5 * REPAINT_MS); // a repaint has asked for its frame by then, and a slider has come to rest
  for (let frames = 0; frames < 3; frames += 1) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    await after(0);
  }
}

async function after(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** Presses a key where the focus is, or on an element. */
export function press(key: string, on: Element = document.activeElement!, shiftKey = false): void {
  on.dispatchEvent(new window.KeyboardEvent("keydown", { key, shiftKey, bubbles: true }) as unknown as Event);
}

/** Lets the pointer do something on an element, in pixels from its corner: everything lies in the corner of the page here. */
export function point(kind: "move" | "down" | "up" | "leave" | "cancel", on: Element, x = 0, y = 0): void {
  const event = new window.PointerEvent(`pointer${kind}`, {
    clientX: x,
    clientY: y,
    pointerId: 1,
    bubbles: true,
  });
  on.dispatchEvent(event as unknown as Event);
}

/** The text of an element, with single spaces. */
export function textOf(element: Element | null): string {
  return (element?.textContent ?? "").replace(/\s+/g, " ").trim();
}

/** The button with a text, or a picture of that name. */
export function button(root: Element, text: string): HTMLElement {
  const found = [...root.querySelectorAll<HTMLElement>("button")].find(
    (one) => textOf(one).includes(text) || one.getAttribute("aria-label") === text,
  );
  if (!found) throw new Error(`there is no button ${text} in ${textOf(root)}`);
  return found;
}

/** Lets preact draw what a state change asked for. */
export async function drawn(): Promise<void> {
  await after(0);
  await after(20);
}
