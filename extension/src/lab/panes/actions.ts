// What the buttons in a pane's views do. Buttons are found by their names, as users and screen readers find them.

export type Action = "export" | "table" | "pause";

/** The name of an action's button, even while it is on; and what distinguishes it from others with that name. */
const BUTTONS: Record<Action, { names: readonly string[]; has: string }> = {
  export: { names: ["Export"], has: "[aria-haspopup=menu]" },
  table: { names: ["Table"], has: "[aria-pressed]" },
  pause: { names: ["Pause", "Go on"], has: "[aria-pressed]" },
};
/** If a view is too narrow for all of its buttons, this one shows the hidden ones. */
const FOLDED = "button[aria-label=More][aria-expanded=false]";

/** What receives the keys of a chart or of a table. */
const FIRST = ".wb-chart, [role=grid] [tabindex='0']";

/** The browser's next frame: by then, views have drawn what was requested. */
export function drawn(): Promise<unknown> {
  return new Promise((resolve) => requestAnimationFrame(resolve));
}

function buttonsOf(body: ParentNode, action: Action): HTMLElement[] {
  const { names, has } = BUTTONS[action];
  const nameOf = (button: HTMLElement) => button.getAttribute("aria-label") ?? button.textContent.trim();
  return [...body.querySelectorAll<HTMLElement>(`button${has}`)].filter((one) => names.includes(nameOf(one)));
}

function isPressed(button: HTMLElement): boolean {
  return button.getAttribute("aria-pressed") === "true";
}

/** Whether a view in `body` supports it. */
export function can(body: ParentNode, action: Action): boolean {
  return buttonsOf(body, action).length > 0;
}

/** Whether it is on now: whether views are paused, or tables shown. */
export function isOn(body: ParentNode, action: Action): boolean {
  return buttonsOf(body, action).some(isPressed);
}

/** Ends it in each part where it is on. */
export function turnOff(body: ParentNode, action: Action): void {
  for (const button of buttonsOf(body, action)) if (isPressed(button)) button.click();
}

/**
 * Applies it where the focus is or was last: in the `part` of a view, which may have several. If that part does not
 * support it, applies it to all, which are then all on or all off. Only one export menu opens.
 */
export async function act(body: ParentNode, part: Element | null, action: Action): Promise<void> {
  const all = buttonsOf(body, action);
  const here = all.filter((button) => part?.contains(button));
  const meant = here.length ? here : all;
  const on = meant.some(isPressed);
  if (action !== "export") {
    const hadFocus = body.contains(document.activeElement);
    for (const button of meant) if (isPressed(button) === on) button.click();
    await drawn();
    // The focused element may be gone, such as a chart that is now a table. If something else has the focus, it keeps
    // it.
    if (hadFocus && (document.activeElement ?? document.body) === document.body)
      (meant[0]?.closest(".wb-part") ?? body).querySelector<HTMLElement>(FIRST)?.focus();
    return;
  }
  const [button] = meant;
  if (button?.closest("[hidden]")) {
    button.closest(".wb-head")?.querySelector<HTMLElement>(FOLDED)?.click(); // a menu opens where it is visible
    await drawn();
  }
  button?.click();
}
