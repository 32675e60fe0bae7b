// How many rows of a dataset each replica reads at which step, why, and what another layout would do.
import { useState } from "preact/hooks";
import { count, joined, percent } from "../format";
import type { DatasetSharding, InputProgress } from "../models";
import { ChartOrTable } from "../parts/head";
import { Button, Note } from "../parts/small";
import { Brushed, stepsOf, useStill } from "../parts/steps";
import { Chart } from "../sharding/chart";
import { Listed } from "../sharding/listed";
import { batchesOf, MUCH_WAITING, waitedShare } from "../sharding/progress";
import { Remedy } from "../sharding/remedy";
import { Twin } from "../sharding/twin";
import { WhatIf } from "../sharding/what_if";
import type { Context, View } from "../view";

export const datasetSharding: View<DatasetSharding> = {
  title: "Dataset sharding",
  draw(props) {
    return <Dataset {...props} />;
  },
};

interface Props {
  model: DatasetSharding;
  context: Context;
}

function Dataset({ model: newest, context }: Props) {
  const [byElement, setByElement] = useState(false);
  const axis = stepsOf(newest.progress?.sampled, context);
  const still = useStill(newest, axis.range !== null, (one) => batchesOf(one, axis.range).length > 0);
  // The click that requests a list also selects a step, so the answer comes while the rest stands still.
  const model = { ...still, listed: newest.listed ?? null };
  const shown = { model, context };
  const { sentence, advice = "", progress } = model;
  return (
    <>
      <ChartOrTable
        title="Dataset sharding"
        facts={[model.reason, model.limit]}
        {...(sentence && { verdict: { sentence, advice, children: <Remedy model={model} /> } })}
        chart={
          <>
            <Note>{joined([model.figures ?? model.summary, progress && progressText(progress, model)])}</Note>
            <Chart {...shown} byElement={byElement && model.positions > 0} />
            <Listed {...shown} />
          </>
        }
        table={<Twin {...shown} />}
      >
        <Brushed steps={axis} />
        <span class="wb-pill">policy {model.policy}</span>
        {model.positions > 0 && (
          <Button aria-pressed={byElement} onClick={() => setByElement(!byElement)}>
            Elements
          </Button>
        )}
      </ChartOrTable>
      <WhatIf {...shown} />
    </>
  );
}

/** The progress of replicas, and how long they waited. */
function progressText(progress: InputProgress, model: DatasetSharding): string {
  const { epoch, given, steps } = progress;
  const shares = steps.map((_, replica) => 100 * waitedShare(progress, replica));
  const most = Math.max(0, ...shares);
  return joined([
    `epoch ${epoch}`,
    `${count(given)}${model.limit ? "" : ` of ${count(model.steps)}`} steps begun`,
    `${most >= MUCH_WAITING ? "▲ " : ""}waited for input ${percent(Math.min(...shares))} to ${percent(most)} of the time`,
  ]);
}
