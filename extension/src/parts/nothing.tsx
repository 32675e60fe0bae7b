// What a view shows without data: what will appear, and the line of code that makes it appear.
import type { ComponentChildren } from "preact";
import { Insert } from "./small";

/** The line of code that makes replicas meet. */
export const STEP = "strategy.run(step, args=(batch,))";

/** Four small machines, one of them awake. */
const MACHINES = [0, 1, 2, 3];

interface Props {
  title: string;
  children: ComponentChildren;
  code: string;
  /** The label of the button that inserts the code. */
  label?: string;
  /** In place of this button. */
  actions?: ComponentChildren;
}

export function Nothing({ title, children, code, label, actions }: Props) {
  return (
    <div class="wb-nothing">
      <svg aria-hidden viewBox="0 0 300 132" width="240">
        {MACHINES.map((at) => (
          <path key={at} class="wb-wire" d={`M${36 + 76 * at} 66Q${36 + 76 * at} 24 150 22`} />
        ))}
        <circle cx="150" cy="20" r="15" class="wb-machine" />
        <path d="M150 13v14M143 20h14" class="wb-line" />
        {MACHINES.map((at) => (
          <g key={at} transform={`translate(${14 + 76 * at} 70)`}>
            <path d="M22 10V0" class="wb-line" />
            <circle cx="22" cy="-2" r="3.5" style={{ fill: `var(--wb-rank-${at})` }} />
            <rect y="10" width="44" height="36" rx="7" class="wb-machine" />
            <path class="wb-line" d={at === 1 ? "M18 36h9" : "M10 26q3.5 4 7 0M27 26q3.5 4 7 0M18 36h9"} />
            {at === 1 && <path class="wb-eyes" d="M14 26h.01M30 26h.01" />}
            <path class="wb-line" d="M10 46v8M34 46v8" />
          </g>
        ))}
      </svg>
      <h3>{title}</h3>
      <p>{children}</p>
      <code>{code}</code>
      <div class="wb-nothing-actions">
        {actions ?? (
          <Insert
            class="wb-filled"
            label={label ?? `Insert ${code.includes("\n") ? "these lines" : "this line"}`}
            code={code}
            otherwise="Copy it into a cell of a notebook."
          />
        )}
      </div>
    </div>
  );
}

/** While replicas have not met in any collective. */
export function NoMeeting({ title }: { title: string }) {
  return (
    <Nothing title={title} code={STEP}>
      Replicas show here what they do as soon as they meet in a collective: who is late, how fast steps are.
    </Nothing>
  );
}
