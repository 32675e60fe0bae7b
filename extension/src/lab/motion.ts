// How much moves on the page: as often as the settings say, and little if the user or their system wants that.
import { setRepaintsPerSecond } from "../frames";
import type { Settings } from "./settings";

const REDUCED = "(prefers-reduced-motion: reduce)";
const STILL = "wb-still";

/** Follows the settings and the system's preference. */
export function followMotion(settings: Settings): void {
  const system = matchMedia(REDUCED);
  const apply = () => {
    const reduced = settings.motion === "reduced" || system.matches;
    document.body.classList.toggle(STILL, reduced);
    setRepaintsPerSecond(reduced ? 1 : settings.repaintsPerSecond);
  };
  settings.listen(apply);
  system.addEventListener("change", apply);
  apply();
}
