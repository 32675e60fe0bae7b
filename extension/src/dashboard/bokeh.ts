// What Bokeh needs for components that are added while the page is open.

/** The part of a Panel component that is used here. */
export interface PanelComponent {
  send_msg(content: unknown): void;
  on(event: string, handler: (content: never) => void): void;
}

const OLDEST = Symbol.for("workbench.oldest");
// The page's oldest component. On the page itself, because its bar and its views are two modules.
const page = globalThis as { [OLDEST]?: PanelComponent };

/**
 * Sends the first message of a component.
 *
 * BokehJS sends along all of a component that has come from the server since its last message, and the server warns that
 * it knows it already. A message of an older component in between prevents that.
 */
export function sendFirst(component: PanelComponent, content: unknown): void {
  const oldest = page[OLDEST];
  if (oldest) oldest.send_msg({ kind: "settled" });
  else page[OLDEST] = component;
  component.send_msg(content);
}

interface BokehDocument {
  on_event(name: string, handler: () => void): void;
}

/** Calls `lost` when the page has lost its server; BokehJS does not retry. */
export function onConnectionLost(lost: () => void): void {
  const { Bokeh } = globalThis as { Bokeh?: { documents: BokehDocument[] } };
  for (const each of Bokeh?.documents ?? []) each.on_event("connection_lost", lost);
}
