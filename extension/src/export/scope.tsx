// What the menu "Export" in a view's head exports: the nearest view around it, and the whole that contains it.
import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Models } from "../models";
import type { ViewName } from "../view";

export interface Shown<K extends ViewName = ViewName> {
  view: K;
  model: Models[K];
}

export interface Scope extends Shown {
  /** Of the view. */
  title: string;
  /** The mounted view, for reports. */
  whole: Shown;
}

export const ExportScope = createContext<Scope | null>(null);

/** Heads inside of it export this view. */
export function Exportable<K extends ViewName>({
  view,
  title,
  model,
  children,
}: Shown<K> & { title: string; children: ComponentChildren }) {
  const outer = useContext(ExportScope);
  const scope = { view, title, model, whole: outer?.whole ?? { view, model } };
  return <ExportScope.Provider value={scope}>{children}</ExportScope.Provider>;
}
