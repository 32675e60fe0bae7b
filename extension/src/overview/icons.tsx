// Small pictures on a grid of 16 × 16, drawn with lines in the colour of the text.
import { Button } from "../parts/small";

const SHAPES = {
  overview: "M1.7 2.2h12.6v5H1.7zM1.7 9.800h5.400v4H1.700zM9 9.800h5.300v4H9z",
  pause: "M5.500 3v10M10.500 3v10",
  play: "M5 3l8 5-8 5z",
  table: "M2 2.700h12v10.600H2zM2 6.200h12M2 9.700h12M6 6.200v7",
  open: "M6.500 3.500H3v9.500h9.500V9.500M9 2.700h4.300V7M13 3L7.500 8.500",
  back: "M13 8H3.500M7.500 4l-4 4 4 4",
} as const;

export function Icon({ name }: { name: keyof typeof SHAPES }) {
  return (
    <svg class="wb-icon" aria-hidden viewBox="0 0 16 16" width="16" height="16">
      <path d={SHAPES[name]} />
    </svg>
  );
}

interface ButtonProps {
  name: keyof typeof SHAPES;
  label: string;
  pressed?: boolean;
  onClick(): void;
}

export function IconButton({ name, label, pressed, onClick }: ButtonProps) {
  return (
    <Button class="wb-icon-button" title={label} aria-label={label} aria-pressed={pressed} onClick={onClick}>
      <Icon name={name} />
    </Button>
  );
}

/** A sign of how good or bad something is, in its colour; the sentence beside it says the same. */
export function SeveritySign({ severity }: { severity: string }) {
  const shapes: Record<string, string> = {
    error: "M6.200 1.500h5.600l4 4v5.600l-4 4H6.200l-4-4V5.500zM6.500 5.700l5 5M11.500 5.700l-5 5",
    warning: "M9 1.800L17 15.200H1zM9 6.500v4.200M9 12.800v.300",
    good: "M9 1.300a7.200 7.200 0 1 0 .010 0zM5.600 8.700l2.400 2.400 4.400-4.800",
  };
  const [outline, ...marks] = (
    (Object.hasOwn(shapes, severity) && shapes[severity]) ||
    "M9 1.300a7.200 7.200 0 1 0 .010 0zM9 7.500v4.500M9 4.800v.300"
  ).split(/(?<=z)/);
  return (
    <svg class="wb-severity" aria-hidden viewBox="0 0 18 17" width="22" height="21">
      <path d={outline} fill="currentColor" />
      <path d={marks.join("")} class="wb-severity-mark" />
    </svg>
  );
}
