// What the browser remembers for a user between pages. If it may not, only this page remembers it.
const PREFIX = "workbench-";
const here = new Map<string, string>();

/** The text stored under a name, or null. */
export function kept(name: string): string | null {
  try {
    return here.get(name) ?? localStorage.getItem(PREFIX + name);
  } catch {
    return null; // a browser may forbid storage
  }
}

/** Stores a text under a name. */
export function keep(name: string, text: string): void {
  here.set(name, text);
  try {
    localStorage.setItem(PREFIX + name, text);
  } catch {
    // As above, or there is no room.
  }
}
