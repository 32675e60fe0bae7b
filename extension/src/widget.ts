import { VIEWS_HERE } from "./export/report_parts";
import { provideCode } from "./export/modules";
import { mount } from "./mount";
import { VIEWS } from "./views";

export { attach, followTerms } from "./attach";
export { mount, provideCode };

// A script that stands in a page, as in a report, can be imported by none: others find here what it has.
Object.assign(globalThis, { [VIEWS_HERE]: { mount, provideCode, VIEWS } });
