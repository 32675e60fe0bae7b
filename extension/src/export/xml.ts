// Text as XML that shows only this text.

const ESCAPES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
// Control characters, which replicas may print, and lone surrogates are not allowed in XML.
const FORBIDDEN =
  // eslint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function escaped(text: string): string {
  return text.replace(FORBIDDEN, "\ufffd").replace(/[&<>"']/g, (sign) => ESCAPES[sign]!);
}

/** An element. Leaves out undefined attributes; `inside` is already markup. */
export function element(
  name: string,
  attributes: Record<string, string | number | undefined>,
  inside = "",
): string {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([key, value]) => ` ${key}="${escaped(typeof value === "number" ? short(value) : String(value))}"`);
  return `<${name}${written.join("")}${inside ? `>${inside}</${name}>` : "/>"}`;
}

/** A number with at most two decimals. */
export function short(value: number): string {
  return String(Math.round(100 * value) / 100);
}
