// Arguments of commands, which may come from anywhere: settings, other extensions, the output of a kernel.

/** The argument if it is a string, otherwise "". */
export function textOf(argument: unknown): string {
  return typeof argument === "string" ? argument : "";
}
