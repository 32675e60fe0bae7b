// Small pictures on a grid of 16 × 16, drawn with lines in the colour of the text.
import type { ButtonHTMLAttributes } from "preact";
import { Button } from "./small";

const SHAPES = {
  overview: "M1.7 2.2h12.6v5H1.7zM1.7 9.8h5.4v4H1.7zM9 9.8h5.3v4H9z",
  pause: "M5.5 3v10M10.5 3v10",
  play: "M5 3l8 5-8 5z",
  table: "M2 2.7h12v10.6H2zM2 6.2h12M2 9.7h12M6 6.2v7",
  open: "M6.5 3.5H3v9.5h9.5V9.5M9 2.7h4.3V7M13 3L7.5 8.5",
  export: "M8 10V2.5M5 5.2L8 2.4l3 2.8M3 8.5v5h10v-5",
  back: "M13 8H3.5M7.5 4l-4 4 4 4",
  again: "M13 3v3.8H9.2M12.8 6.5A5.2 5.2 0 1 0 13 9.5",
  elements: "M2 2.7h12v10.6H2zM2 6.2h12M2 9.7h12M6 2.7v10.6M10 2.7v10.6",
  histogram: "M1.7 13.5h12.6M3 13.5V9.5h3v4M6.5 13.5V4h3v9.5M10 13.5V7h3v6.5",
} as const;

export function Icon({ name }: { name: keyof typeof SHAPES }) {
  return (
    <svg class="wb-icon" aria-hidden viewBox="0 0 16 16" width="16" height="16">
      <path d={SHAPES[name]} />
    </svg>
  );
}

interface ButtonProps extends ButtonHTMLAttributes {
  name: keyof typeof SHAPES;
  label: string;
  pressed?: boolean;
  onClick(): void;
}

export function IconButton({ name, label, pressed, ...more }: ButtonProps) {
  return (
    <Button class="wb-icon-button" title={label} aria-label={label} aria-pressed={pressed} {...more}>
      <Icon name={name} />
    </Button>
  );
}

export function PauseButton({ paused, onClick }: { paused: boolean; onClick(): void }) {
  const [name, label] = paused ? (["play", "Go on"] as const) : (["pause", "Pause"] as const);
  return <IconButton {...{ name, label, onClick }} pressed={paused} />;
}

/** A sign of how good or bad something is, in its colour; the sentence beside it says the same. */
export function SeveritySign({ severity }: { severity: string }) {
  const shapes: Record<string, string> = {
    error: "M6.2 1.5h5.6l4 4v5.6l-4 4H6.2l-4-4V5.5zM6.5 5.7l5 5M11.5 5.7l-5 5",
    warning: "M9 1.8L17 15.2H1zM9 6.5v4.2M9 12.8v.3",
    good: "M9 1.3a7.2 7.2 0 1 0 .01 0zM5.6 8.7l2.4 2.4 4.4-4.8",
  };
  const [outline, ...marks] = (
    (Object.hasOwn(shapes, severity) && shapes[severity]) ||
    "M9 1.3a7.2 7.2 0 1 0 .01 0zM9 7.5v4.5M9 4.8v.3"
  ).split(/(?<=z)/);
  return (
    <svg class="wb-severity" aria-hidden viewBox="0 0 18 17" width="22" height="21">
      <path d={outline} fill="currentColor" />
      <path d={marks.join("")} class="wb-severity-mark" />
    </svg>
  );
}
