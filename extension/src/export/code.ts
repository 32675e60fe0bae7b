// The views' own code as text, for reports that stand alone; whoever loads the code says where it is.
let source: (() => Promise<string>) | null = null;

/** Tells where the text of this module can be had. */
export function provideCode(from: () => Promise<string>): void {
  source = from;
}

/** Gives the text, or is null where nobody knows it. */
export function codeSource(): (() => Promise<string>) | null {
  return source;
}
