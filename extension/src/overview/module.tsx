// A card of the overview: its name, content and legend, and a link to the pane that shows more.
import type { ComponentChildren } from "preact";
import type { ViewName } from "../view";
import { IconButton } from "../parts/icons";

interface Props {
  name: string;
  about: string;
  /** Its class, if its name comes from the user. */
  kind?: string;
  legend?: ComponentChildren;
  /** The pane that shows more, and the function that opens it. */
  pane?: ViewName;
  open?(view: ViewName): void;
  /** The greatest height of its chart. */
  most?: number;
  children: ComponentChildren;
}

export function Module({
  name,
  about,
  kind = name.toLowerCase(),
  legend,
  pane,
  open,
  most,
  children,
}: Props) {
  return (
    <div
      class={`wb-module wb-module-${kind}`}
      role="group"
      aria-label={name}
      style={most ? `--wb-highest: ${most}px` : ""}
    >
      <div class="wb-module-head">
        <h4>{name}</h4>
        <span class="wb-about">{about}</span>
        <span class="wb-keys">{legend}</span>
        {pane && (
          <IconButton name="open" label={`More of ${name.toLowerCase()}`} onClick={() => open?.(pane)} />
        )}
      </div>
      {children}
    </div>
  );
}

/** A legend entry; `kind` is a class of the style sheet. */
export function Swatch({ kind, name }: { kind: string; name: string }) {
  return (
    <span class="wb-key">
      <i aria-hidden data-kind={kind} />
      {name}
    </span>
  );
}
