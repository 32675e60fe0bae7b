// What the views of a pane do by buttons of their own. They are found by their names, as people and screen readers find them.

export type Action = "export" | "table" | "pause";

/** What the button of an action is called, also while it is on; and what it has, unlike others of that name. */
const BUTTONS: Record<Action, { names: readonly string[]; has: string }> = {
  export: { names: ["Export"], has: "[aria-haspopup=menu]" },
  table: { names: ["Table"], has: "[aria-pressed]" },
  pause: { names: ["Pause", "Go on"], has: "[aria-pressed]" },
};
/** Where a view is too narrow for all of its buttons, this one unfolds those that are hidden. */
const FOLDED = "button[aria-label=More][aria-expanded=false]";

/** What takes the keys of a chart, or of a table. */
const FIRST = ".wb-chart, [role=grid] [tabindex='0']";

/** The next time that the browser draws: views have drawn what they were asked for by then. */
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

/** Whether a view in `body` can do it. */
export function can(body: ParentNode, action: Action): boolean {
  return buttonsOf(body, action).length > 0;
}

/** Whether it is done now: whether views are paused, or tables. */
export function isOn(body: ParentNode, action: Action): boolean {
  return buttonsOf(body, action).some(isPressed);
}

/** Ends it in each part that does it. */
export function turnOff(body: ParentNode, action: Action): void {
  for (const button of buttonsOf(body, action)) if (isPressed(button)) button.click();
}

/**
 * Does it where the focus is, or was last: in the `part` of a view, which may have several; where that cannot, in all of
 * them, and they are all on or all off then. Only one menu of exports opens.
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
    // What had it may be gone, such as a chart that is a table now; whoever has it meanwhile keeps it.
    if (hadFocus && (document.activeElement ?? document.body) === document.body)
      (meant[0]?.closest(".wb-part") ?? body).querySelector<HTMLElement>(FIRST)?.focus();
    return;
  }
  const [button] = meant;
  if (button?.closest("[hidden]")) {
    button.closest(".wb-head")?.querySelector<HTMLElement>(FOLDED)?.click(); // a menu opens where it is seen
    await drawn();
  }
  button?.click();
}
