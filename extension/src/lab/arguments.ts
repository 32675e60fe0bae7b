// Arguments of commands, which come from anybody: settings, other extensions, what a kernel displays.

/** The argument if it is a text, else "". */
export function textOf(argument: unknown): string {
  return typeof argument === "string" ? argument : "";
}
