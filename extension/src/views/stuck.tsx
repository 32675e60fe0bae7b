// The banner that says which collective hangs, and who is missing.
import { Exportable } from "../export/scope";
import { Head, Rest } from "../parts/head";
import { Card } from "../parts/verdict";
import { groupText } from "../parts/terms";
import { runsOf } from "../format";
import type { Collectives, EventItem, GroupView, LastSeen, Snapshot, Stuck } from "../models";
import type { View } from "../view";
import { lanes } from "./lanes";

const MAX_LAST = 4;

export const stuck: View<Collectives> = {
  title: "Stuck collectives",
  draw(shown) {
    const { model } = shown;
    const groups = model.snapshot.groups.filter((group) => group.stuck !== null);
    return (
      <div class="wb-part">
        <Head title="Stuck collectives" status={model.status} />
        {groups.length ? (
          <Banners snapshot={model.snapshot} />
        ) : (
          <Card severity="good" sentence="No collective is stuck" />
        )}
        <Rest>
          <Exportable view="lanes" title={lanes.title} model={shown.model}>
            <lanes.draw {...shown} />
          </Exportable>
        </Rest>
      </div>
    );
  },
};

export function Banners({ snapshot }: { snapshot: Snapshot }) {
  const { groups, events } = snapshot;
  return (
    <>
      {groups.map(
        (group) =>
          group.stuck && <Banner key={group.group} group={group} stuck={group.stuck} events={events} />,
      )}
    </>
  );
}

interface BannerProps {
  group: GroupView;
  stuck: Stuck;
  events: readonly EventItem[];
}

function Banner({ group, stuck, events }: BannerProps) {
  const more = stuck.last.length - MAX_LAST;
  const lost = events.filter(
    (event) =>
      event.name === "replica_lost" &&
      event.generation === group.generation &&
      stuck.missing.includes(event.replica),
  );
  return (
    <Card
      severity="error"
      role="alert"
      sentence={`step ${stuck.step} ${stuck.op} #${stuck.seq + 1}: ${howText(stuck)}`}
    >
      <p>
        {groupText(group.group, group.n)}
        {stuck.site && ` · entered at ${stuck.site}`} by replica{stuck.waiting.length > 1 ? "s " : " "}
        {runsOf(stuck.waiting)}
      </p>
      <ul>
        {lost.slice(0, MAX_LAST).map((event) => (
          <li key={event.key}>{`replica ${event.replica} is lost: ${event.message}`}</li>
        ))}
        {stuck.last.slice(0, MAX_LAST).map((last) => (
          <li key={last.replica}>{lastText(last, stuck.step)}</li>
        ))}
        {more > 0 && <li>… and {more} more</li>}
      </ul>
    </Card>
  );
}

function howText({ state, missing, reached }: Stuck): string {
  const who = `replica${missing.length > 1 ? "s" : ""} {${runsOf(missing)}}`;
  if (state === "waiting") return `waiting for ${who}`;
  if (state === "failed") return `failed, ${who} had not come to it`;
  if (reached.length === missing.length) return `lost ${who} while in it`;
  const some = reached.length ? `, but replica {${runsOf(reached)}} had` : "";
  return `lost ${who} that had not come to it${some}`;
}

function lastText(last: LastSeen, step: number): string {
  const now = last.now && `replica ${last.replica} is at ${last.now}; it `;
  if (!last.op)
    return now ? `${now}has come to no collective` : `no record of replica ${last.replica} has arrived`;
  const where = last.site ? ` at ${last.site}` : "";
  const when = last.step === step ? "" : `step ${last.step} `;
  return `${now || `replica ${last.replica} `}last did ${when}${last.op} #${last.seq + 1}${where}`;
}
