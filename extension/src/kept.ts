// What the browser keeps for a person from one page to the next. Where it may not, it counts for this page.
const PREFIX = "workbench-";
const here = new Map<string, string>();

/** What was kept under a name, or null. */
export function kept(name: string): string | null {
  try {
    return here.get(name) ?? localStorage.getItem(PREFIX + name);
  } catch {
    return null; // a browser may forbid storage
  }
}

/** Keeps a text under a name. */
export function keep(name: string, text: string): void {
  here.set(name, text);
  try {
    localStorage.setItem(PREFIX + name, text);
  } catch {
    // As above, or there is no room.
  }
}
