export { attach, followTerms } from "./attach";
export { provideCode } from "./export/modules";
export { mount } from "./mount";
import { drawReport } from "./export/report_page";

// A module that stands in a page, as in a report, has the address of the page.
if (import.meta.url.split("#")[0] === document.URL.split("#")[0]) drawReport();
