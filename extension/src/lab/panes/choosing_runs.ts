// The dialog that asks which two recorded runs to compare.
import { Dialog, showDialog } from "@jupyterlab/apputils";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Widget } from "@lumino/widgets";
import type { RunEntry } from "../../models";

class Choice extends Widget {
  #first: HTMLSelectElement;
  #second: HTMLSelectElement;

  constructor(
    runs: readonly RunEntry[],
    [first, second]: readonly [string, string],
    trans: TranslationBundle,
  ) {
    super();
    this.addClass("wb-choice");
    const select = (text: string, chosen: string) => {
      const label = document.createElement("label");
      const field = document.createElement("select");
      field.append(...runs.map(({ path, name }) => new Option(name, path, false, path === chosen)));
      label.append(text, field);
      this.node.append(label);
      return field;
    };
    this.#first = select(trans.__("Before"), first);
    this.#second = select(trans.__("After"), second);
  }

  getValue(): [first: string, second: string] {
    return [this.#first.value, this.#second.value];
  }
}

/** The paths of two runs, one of which may be known; null if the user cancels. */
export async function chooseRuns(
  runs: readonly RunEntry[],
  known: string,
  trans: TranslationBundle,
): Promise<[first: string, second: string] | null> {
  const able = runs.filter((run) => run.problem === "");
  const [newest, before] = able;
  if (!newest || !before) {
    throw new Error(
      trans.__('Two recorded runs are needed: with wb.record("runs/first.parquet") makes one.'),
    );
  }
  // Users usually mean the newest run, unless the pane shows that or another one.
  const chosen = known && known !== newest.path ? known : before.path;
  const answer = await showDialog({
    title: trans.__("Compare two recorded runs"),
    body: new Choice(able, [chosen, newest.path], trans),
    buttons: [Dialog.cancelButton(), Dialog.okButton({ label: trans.__("Compare") })],
  });
  return answer.button.accept ? answer.value : null;
}
