// What a notebook's output says about a view. It comes from a file that anyone may have written, so nothing is trusted.
import { DRAWN, type Shape, SHAPES } from "../../shapes";
import { VIEWS, type ViewName } from "../../views";
import type { AnyModel } from "../server/messages";

export const SAVED = "application/vnd.workbench.view+json";
/** The version of the form in which outputs keep a view, as workbench/ui/widgets/bundle.py writes it. */
export const VERSION = 1;

export interface Saved {
  view: ViewName;
  model: AnyModel;
}

/** The view in an output's data; null if it is malformed, or of a version that this code does not know. */
export function readSaved(data: unknown): Saved | null {
  if (!isRecord(data) || Object.keys(data).sort().join() !== "model,version,view") return null;
  const { version, view, model } = data;
  if (version !== VERSION || typeof view !== "string" || !Object.hasOwn(VIEWS, view)) return null;
  const name = view as ViewName;
  return fits(model, { object: DRAWN[name] }) ? { view: name, model: model as AnyModel } : null;
}

/** What to keep of a view in an output's data. */
export function written(saved: Saved): Record<string, unknown> {
  return { version: VERSION, view: saved.view, model: saved.model };
}

/** Whether a value has the shape of a model, or of a part of one. */
export function fits(value: unknown, shape: Shape): boolean {
  if (shape === "null") return value === null;
  if (shape === "integer") return Number.isInteger(value);
  if (shape === "number") return Number.isFinite(value);
  if (typeof shape === "string") return typeof value === shape;
  if ("either" in shape) return shape.either.some((one) => fits(value, one));
  if ("list" in shape) return Array.isArray(value) && value.every((part) => fits(part, shape.list));
  if ("tuple" in shape) {
    const { tuple } = shape;
    return (
      Array.isArray(value) &&
      value.length === tuple.length &&
      tuple.every((one, index) => fits(value[index], one))
    );
  }
  if ("optional" in shape) return fits(value, shape.optional);
  const fields = SHAPES[shape.object] ?? {};
  return (
    isRecord(value) &&
    Object.keys(value).every((name) => Object.hasOwn(fields, name)) &&
    Object.entries(fields).every(([name, one]) =>
      Object.hasOwn(value, name) ? fits(value[name], one) : typeof one === "object" && "optional" in one,
    )
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
