// Draws views with hostile texts in the place of theirs, and says what came of it that harmless texts do not make.
async ({ views, payloads, harmless, meanings }) => {
  const { mount } = await import("./widget.js");
  const main = document.querySelector("main");
  const DANGEROUS = /^(href|xlink:href|src|srcset|srcdoc|action|formaction|poster|data|style|on.*)$/;
  const known = new Set(["ul data-side"]); // the side on which a menu has room
  const faults = [];

  /** The model with `text` in the place of all strings, or of all but those that views know the meaning of. */
  const replaced = (value, text, all, name = "") => {
    if (typeof value === "string") return all || !meanings.includes(name) ? text : value;
    if (Array.isArray(value)) return value.map((part) => replaced(part, text, all, name));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, replaced(part, text, all, key)]));
  };

  /** Elements, their attributes, and what in these a browser would load or run. */
  const found = (root) =>
    [...root.querySelectorAll("*")].flatMap((element) => [
      element.localName,
      ...[...element.attributes].flatMap(({ name, value }) => [
        `${element.localName} ${name}`,
        ...(DANGEROUS.test(name) && /hit|evil|script|import|expression/i.test(value) ? [`${name}=${value}`] : []),
      ]),
    ]);

  const draw = async (view, model, thorough) => {
    const place = document.createElement("div");
    main.append(place);
    const mounted = mount(view, place, model);
    mounted.tell(typeof model.run === "string" ? model.run : "");
    const looks = new Set(found(place));
    for (const button of place.querySelectorAll("button"))
      if (["Table", thorough && "Export"].includes(button.textContent)) button.click();
    for (const focusable of place.querySelectorAll("[tabindex]"))
      focusable.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve(); // until what was clicked is drawn
    for (const look of found(place)) looks.add(look);
    const text = place.textContent;
    mounted.unmount();
    place.remove();
    return { looks, text };
  };

  for (const [view, models] of views)
    for (const model of models) {
      for (const look of (await draw(view, model, true)).looks) known.add(look);
      for (const text of harmless)
        for (const all of [false, true])
          for (const look of (await draw(view, replaced(model, text, all), true)).looks) known.add(look);
    }
  let drawn = 0;
  let seen = 0;
  for (const [number, payload] of payloads.entries()) {
    const thorough = number % 20 === 0;
    for (const [place, [view, models]] of views.entries()) {
      for (const model of thorough ? models : models.slice(0, 1)) {
        try {
          const all = (number + place) % 2 === 0;
          const { looks, text } = await draw(view, replaced(model, payload, all), thorough);
          drawn += 1;
          seen += text.includes(payload.slice(0, 8));
          for (const look of looks)
            if (!known.has(look)) faults.push(`${view} drew ${look} for ${payload.slice(0, 60)}`);
        } catch (error) {
          faults.push(`${view} failed for ${payload.slice(0, 60)}: ${error}`);
        }
      }
    }
    await new Promise((resolve) => setTimeout(resolve)); // handlers that were smuggled in would run now
    if ("hit" in globalThis) {
      faults.push(`ran: ${payload.slice(0, 60)}`);
      delete globalThis.hit;
    }
  }
  return { drawn, seen, faults: [...new Set(faults)].slice(0, 50) };
}
