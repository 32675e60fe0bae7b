// An icon for each pane, so that tabs can be distinguished where there is no room for titles.
import { LabIcon } from "@jupyterlab/ui-components";
import type { ViewName } from "../views";

/** The icon of workbench itself. */
export const ICON =
  '<circle cx="8" cy="3" r="2"/><circle cx="3" cy="12" r="2"/><circle cx="13" cy="12" r="2"/>' +
  '<path d="M7.3 4.4 3.9 10.2l.9.5L8.2 4.9zM8.7 4.4l3.4 5.8-.9.5L7.8 4.9zM5 11.5h6v1H5z"/>';

/** Drawings in 16 × 16, in the colour of JupyterLab's icons. */
const SHAPES: Record<ViewName, string> = {
  overview:
    '<path d="M1 2h14v6H1zm1.300 1.300v3.400h11.400V3.300zM1 9.500h6.200V14H1zm1.300 1.300v1.900h3.600v-1.900zM8.800 9.500H15V14H8.800zm1.300 1.300v1.900h3.600v-1.900z"/>',
  topology:
    '<circle cx="8" cy="3" r="2"/><circle cx="3" cy="13" r="2"/><circle cx="13" cy="13" r="2"/><path d="M7.5 4h1v4h4v4h-1V9h-7v3h-1V8h4z"/>',
  values: '<path d="M2 13h12v1H2zM3 9h2v3H3zm4-5h2v8H7zm4 2h2v6h-2z"/>',
  array_sharding: '<path d="M2 2h5v5H2zm7 0h5v5H9zM2 9h5v5H2zm7 0h5v5H9z"/>',
  dataset_sharding: '<path d="M2 2h4v3H2zm5 0h7v3H7zM2 7h8v3H2zm9 0h3v3h-3zM2 12h5v3H2zm6 0h6v3H8z"/>',
  input: '<path d="M1 3h4v4H1zm10 0h4v4h-4zM5 4.500h2.500V3L10 5 7.500 7V5.500H5zM1 10h14v1H1zm0 3h9v1H1z"/>',
  data_service:
    '<path d="M6 1h4v4H6zM1 11h4v4H1zm5 0h4v4H6zm5 0h4v4h-4zM7.500 5h1v2.500H13v3h-1v-2H4v2H3v-3h4.500z"/>',
  servers:
    '<path d="M2 2h12v4H2zm1.500 1.300v1.400H5V3.300zM2 10h12v4H2zm1.500 1.300v1.400H5v-1.400zM4.500 7h1v2h-1zm6 0h1v2h-1z" fill-rule="evenodd"/>',
  collectives: '<path d="M2 4h8V2l4 3-4 3V6H2zm12 6H6V8l-4 3 4 3v-2h8z"/>',
  collective_table: '<path d="M2 2h12v3H2zm0 4h5v3H2zm6 0h6v3H8zm-6 4h5v4H2zm6 0h6v4H8z"/>',
  lanes: '<path d="M2 3h7v2H2zm3 4h9v2H5zm-2 4h6v2H3z"/>',
  sweep: '<path d="M2 2h1v11h11v1H2zm2 9 4-5 3 2 3-5 .8.6-3.5 6L8.2 7.4 4.8 11.600z"/>',
  heat_map: '<path d="M2 2h3v3H2zm4 4h3v3H6zm4-4h4v3h-4zM2 10h3v4H2zm8 0h4v4h-4z"/>',
  stuck: '<path d="M8 1.5 15 14H1zM7.3 6v4h1.400V6zm0 5v1.500h1.400V11z"/>',
  log: '<path d="M2 3h2v2H2zm4 0h8v2H6zM2 7h2v2H2zm4 0h8v2H6zm-4 4h2v2H2zm4 0h5v2H6z"/>',
  devices:
    '<path d="M4 4h8v8H4zM6 1h1v2H6zm3 0h1v2H9zM6 13h1v2H6zm3 0h1v2H9zM1 6h2v1H1zm0 3h2v1H1zm12-3h2v1h-2zm0 3h2v1h-2z"/>',
  runs: '<path d="M2 2h3v12H2zm4 0h3v12H6zm4.2.6 2.9-.8 3 11.5-2.9.8z"/>',
  replay: '<path d="M3 2l11 6-11 6z"/>',
};

/** Icons of commands, in the same way. */
const DOING = {
  alert: '<path d="M8 1.500 15 14H1zM7.300 6v4h1.400V6zm0 5v1.500h1.400V11z"/>',
  baseline:
    '<path d="M2 2h1v11h11v1H2zm2.500 8.500 3-4 3 2 3-5 .8.5-3.600 6-3-2-2.400 3.200zM4 12h2v-1H4zm4 0h2v-1H8zm4 0h2v-1h-2z"/>',
  beside: '<path d="M1 3h6.300v10H1zm1.300 1.300v7.400H6V4.300zM8.700 3H15v10H8.700z"/>',
  code: '<path d="M5 1h9v11h-3v3H2V4h3zm1.300 1.300V4H11v6.700h1.700V2.300zM3.300 5.300v8.400h6.400V5.300z"/>',
  compare: '<path d="M2 13V8h3v5zm4 0V5h1.300v8zm2.700 0V2H10v11zM11 13V6h3v7zM1 14h14v1H1z"/>',
  delete:
    '<path d="M6 1h4v1h4v1.300H2V2h4zM3 4.500h10L12.200 15H3.800zm2.800 2 .3 6.500h1L6.800 6.500zm3.400 0L8.900 13h1l.3-6.500z"/>',
  export:
    '<path d="M7.300 1h1.400v6.500l2.300-2.300 1 1-4 4-4-4 1-1 2.300 2.300zM2 10h1.400v3.600h9.200V10H14v5H2z"/>',
  follow: '<path d="M1 7.300h8.500L6.200 4l1-1L12 7.800v.4L7.200 13l-1-1 3.300-3.300H1zM13 2h1.500v12H13z"/>',
  guide:
    '<path d="M1 2.500c2.500-.8 4.800-.5 6.400.7v10.600C5.800 12.600 3.500 12.300 1 13zm7.600.7C10.200 2 12.500 1.700 15 2.500V13c-2.500-.7-4.800-.4-6.400.8z"/>',
  help: '<path d="M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1zm0 1.400a5.600 5.600 0 1 0 0 11.200A5.600 5.600 0 0 0 8 2.400zM7.300 11h1.400v1.400H7.300zM5.500 6.300A2.500 2.500 0 1 1 8.700 8.600V10H7.300V7.500A1.200 1.200 0 1 0 6.800 6.300z"/>',
  insert:
    '<path d="M1 2h14v5H1zm1.300 1.300v2.400h11.400V3.300zM7.300 8.500h1.400v2h2V12h-2v2H7.300v-2h-2v-1.500h2z"/>',
  layout:
    '<path d="M1 2h14v12H1zm1.300 1.300v9.400h5V3.300zm6.300 0v4h5.100v-4zm0 5.300v4.100h5.100V8.600z"/>',
  newest: '<path d="M1 3l6 5-6 5zm6.500 0 6 5-6 5zM13.500 3H15v10h-1.500z"/>',
  next: '<path d="M8 2a6 6 0 0 1 5.700 4.200L15 5.500V10h-4.300l1.600-1.700A4.600 4.600 0 1 0 11 11.600l1 1A6 6 0 1 1 8 2z"/>',
  pin: '<path d="M5 1h6v1.300h-1V7l2 2v1.300H8.700V15H7.300v-4.700H4V9l2-2V2.300H5z"/>',
  pause: '<path d="M3 2h3.500v12H3zm6.500 0H13v12H9.500z"/>',
  run: '<path d="M2 2h3v12H2zm5 1 7 5-7 5z"/>',
  save: '<path d="M2 2h9.500L14 4.500V14H2zm1.300 1.300v9.400h9.400V5l-1.700-1.700V7H5V3.300zm3 0v2.400h3.400V3.300zM5.500 9h5v3.700h-5z"/>',
  scale:
    '<path d="M1 1h5v1.300H3.300L7 6 6 7 2.300 3.300V6H1zm9 13h2.700L9 10l1-1 3.700 3.700V10H15v5h-5z"/>',
  start: '<path d="M4 2l9 6-9 6z"/>',
  stop: '<path d="M3 3h10v10H3z"/>',
  table:
    '<path d="M1 2h14v12H1zm1.300 4v2.300h3.400V6zm4.700 0v2.300h6.700V6zM2.300 9.600v3.100h3.400V9.600zm4.700 0v3.100h6.700V9.600z"/>',
} as const;

/** An icon of the application for drawings in 16 × 16. */
export function iconOf(name: string, shapes: string): LabIcon {
  const svgstr = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><g class="jp-icon3 jp-icon-selectable" fill="#616161">${shapes}</g></svg>`;
  return new LabIcon({ name: `workbench:${name}`, svgstr });
}

/** The icon of a view's pane, as SVG. */
export function shapesOf(view: ViewName): string {
  return SHAPES[view];
}

/** The icon of each view's pane. */
export function viewIcons(): Record<ViewName, LabIcon> {
  const pairs = Object.entries(SHAPES).map(([view, shapes]) => [view, iconOf(view, shapes)] as const);
  return Object.fromEntries(pairs) as Record<ViewName, LabIcon>;
}

/** The icon of an action, as SVG; opening the overview is one. */
export function actionShapes(name: keyof typeof DOING | "overview"): string {
  return name === "overview" ? SHAPES.overview : DOING[name];
}

/** The icon of a command's action. */
export function commandIcon(name: keyof typeof DOING): LabIcon {
  return iconOf(`do-${name}`, DOING[name]);
}
