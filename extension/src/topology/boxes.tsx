// A few hosts with their workers, devices and replicas, each in a box with what it does now.
import { statusOf } from "../colours";
import { counted, joined, memoryText } from "../format";
import type { DeviceNode, HostNode, WorkerNode } from "../models";
import { ReplicaName } from "../parts/marks";
import { Button, Quiet } from "../parts/small";
import { QUIET, StatusWord } from "../parts/status";
import { groupText } from "../parts/terms";
import type { Context } from "../view";

const MAX_REPLICAS = 8;

/** All hosts; in a pane with room, boxes are higher than what they say. */
export function Boxes({ hosts, context }: { hosts: readonly HostNode[]; context: Context }) {
  return (
    <div class="wb-hosts">
      {hosts.map((host) => (
        <Host key={host.name} host={host} context={context} />
      ))}
    </div>
  );
}

function Host({ host, context }: { host: HostNode; context: Context }) {
  return (
    <div class="wb-host" role="group" aria-label={`host ${host.name}`}>
      <div>
        <strong>{host.name}</strong> <Quiet>{counted(host.workers.length, "worker")}</Quiet>
      </div>
      <div class="wb-workers">
        {host.workers.map((worker) => (
          <Worker key={worker.name} worker={worker} context={context} />
        ))}
      </div>
    </div>
  );
}

function Worker({ worker, context }: { worker: WorkerNode; context: Context }) {
  const facts = [`pid ${worker.pid}`, worker.memory_bytes === null ? "" : memoryText(worker.memory_bytes)];
  return (
    <div class="wb-worker" data-status={worker.status}>
      <div>
        worker {worker.name} {!QUIET.has(worker.status) && <StatusWord word={worker.status} />}
      </div>
      <div class="wb-quiet">{worker.detail || joined(facts)}</div>
      <div class="wb-places">
        {worker.devices.map((device) => (
          <Device key={device.name} device={device} context={context} />
        ))}
      </div>
    </div>
  );
}

function Device({ device, context }: { device: DeviceNode; context: Context }) {
  if (!device.replicas.length) {
    return <div class="wb-quiet">{device.name}: no replica</div>;
  }
  return (
    <div>
      {device.replicas.slice(0, MAX_REPLICAS).map((replica) => (
        <Button
          key={`${replica.group}|${replica.replica}`}
          class="wb-replica"
          aria-pressed={context.selected.replica === replica.replica}
          title={`${groupText(replica.group)}, replica ${replica.replica}${replica.doing && `: ${replica.doing}`}`}
          onClick={() => context.select(replica.replica)}
        >
          <ReplicaName replica={replica.replica} /> <Quiet>{device.name}</Quiet>
          <span class="wb-doing">
            {replica.busy ? "▶ " : replica.doing === "lost" ? "✖ " : ""}
            {joined([replica.news && `${statusOf(replica.news).sign} ${replica.news}`, replica.doing])}
          </span>
        </Button>
      ))}
      {device.replicas.length > MAX_REPLICAS && (
        <div class="wb-quiet">… {device.replicas.length - MAX_REPLICAS} more on it</div>
      )}
    </div>
  );
}
