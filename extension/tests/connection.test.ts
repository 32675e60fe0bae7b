import assert from "node:assert/strict";
import { test } from "node:test";
import { Connection, type Socket } from "../src/lab/server/connection";
import { Followed, type Front, IN_FRONT, NEWEST } from "../src/lab/panes/followed";
import type { ClusterInfo } from "../src/lab/server/messages";
import type { Collectives } from "../src/models";

class FakeSocket implements Socket {
  sent: unknown[] = [];
  closed = false;
  onopen: ((event: Event) => void) | null = null;
  onmessage: ((event: MessageEvent) => void) | null = null;
  onclose: ((event: CloseEvent) => void) | null = null;
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(): void {
    this.closed = true;
  }
  open(): void {
    this.onopen?.({} as Event);
  }
  say(message: unknown): void {
    this.onmessage?.({ data: JSON.stringify(message) } as MessageEvent);
  }
}

const round = () => new Promise<void>((resolve) => setImmediate(resolve));

function cluster(id: string, status: string, kind = "driver", kernel = ""): ClusterInfo {
  return { id, kind, kernel, summary: { status } } as ClusterInfo;
}

function change(since: number, version: number, keys: string[], changed: string[]) {
  const table = { keys, changed: changed.map((key) => ({ key })) };
  const none = { keys: [], changed: [] };
  return { since, version, counters: {}, table, internal: none, groups: [], events: none };
}

test("what several panes of a channel want is asked for once, and let go with the last of them", async () => {
  const socket = new FakeSocket();
  const connection = new Connection(() => socket);
  const one = new AbortController();
  const other = new AbortController();
  connection.watch("a", "topology", () => undefined, one.signal);
  connection.watch("a", "topology", () => undefined, other.signal);
  socket.open();
  await round();
  assert.deepEqual(socket.sent, [{ watch: [["a", "topology"]] }]);

  one.abort();
  await round();
  assert.equal(socket.sent.length, 1);
  other.abort();
  await round();
  assert.deepEqual(socket.sent[1], { watch: [] });
  connection.close();
});

test("parts take the place of what a model has; one without a model starts the connection anew", () => {
  const socket = new FakeSocket();
  const connection = new Connection(() => socket);
  const model = { elements: 8, progress: null };
  const told = { cluster: "a", channel: "dataset_sharding" };
  socket.say({ type: "model", model, ...told });
  socket.say({ type: "part", part: { progress: { given: 1 } }, ...told });
  assert.deepEqual(connection.model("a", "dataset_sharding"), { elements: 8, progress: { given: 1 } });
  assert.deepEqual(model, { elements: 8, progress: null });
  assert.equal(socket.closed, false);

  socket.say({ type: "part", part: { progress: null }, ...told, cluster: "b" });
  assert.equal(socket.closed, true);
  assert.equal(connection.model("b", "dataset_sharding"), undefined);
  connection.close();
});

test("of a page that nobody can see no channel is watched, and all of them again when somebody can", async () => {
  const socket = new FakeSocket();
  const connection = new Connection(() => socket);
  connection.watch("a", "topology", () => undefined, new AbortController().signal);
  socket.open();
  await round();
  for (const visible of [false, true]) {
    connection.setVisible(visible);
    await round();
  }
  assert.deepEqual(socket.sent, [
    { watch: [["a", "topology"]] },
    { watch: [] },
    { watch: [["a", "topology"]] },
  ]);
  connection.close();
});

test("changes of a feed are merged; one that begins after the state starts the connection anew", () => {
  const socket = new FakeSocket();
  const connection = new Connection(() => socket);
  const drawn: string[][] = [];
  const draw = () => {
    const model = connection.model("a", "collectives") as Collectives;
    drawn.push(model.snapshot.table.map((row) => row.key));
  };
  connection.watch("a", "collectives", draw, new AbortController().signal);
  const feed = (part: unknown) => ({
    type: "feed",
    cluster: "a",
    channel: "collectives",
    frame: {},
    change: part,
  });
  socket.say(feed(change(0, 3, ["x", "y"], ["x", "y"])));
  socket.say(feed(change(3, 4, ["y", "z"], ["z"])));
  assert.deepEqual(drawn, [
    ["x", "y"],
    ["y", "z"],
  ]);

  socket.say(feed(change(9, 10, ["z"], [])));
  assert.equal(socket.closed, true);
  assert.equal(drawn.length, 2);
  connection.close();
});

test("the list of recorded runs is of no cluster, so it stays when clusters come and go", async () => {
  const socket = new FakeSocket();
  const connection = new Connection(() => socket);
  const drawn: unknown[] = [];
  const draw = () => drawn.push(connection.model("", "runs"));
  connection.watch("", "runs", draw, new AbortController().signal);
  socket.open();
  await round();
  assert.deepEqual(socket.sent, [{ watch: [["", "runs"]] }]);

  const model = { folder: ".", runs: [], compared: [], rows: [] };
  socket.say({ type: "model", cluster: "", channel: "runs", model });
  socket.say({ type: "clusters", clusters: [cluster("a", "live")] });
  assert.deepEqual(drawn, [model]);
  assert.deepEqual(connection.model("", "runs"), model);
  connection.close();
});

test("a connection that is lost is opened again, and told what is open", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const sockets: FakeSocket[] = [];
  const connection = new Connection(() => sockets[sockets.push(new FakeSocket()) - 1] as FakeSocket);
  connection.watch("a", "devices", () => undefined, new AbortController().signal);
  sockets[0]?.open();
  sockets[0]?.onclose?.({} as CloseEvent);
  assert.equal(connection.connected, false);
  context.mock.timers.tick(500);
  sockets[1]?.open();
  await round();
  assert.deepEqual(sockets[1]?.sent, [{ watch: [["a", "devices"]] }]);
  connection.close();
});

/** A page with two notebooks, of which `front` says which one a person works in. */
function page() {
  const socket = new FakeSocket();
  const connection = new Connection(() => socket);
  const fronts = { front: null as Front | null, onChange: () => undefined };
  return { socket, connection, fronts, followed: new Followed(connection, fronts) };
}

test("the newest cluster is a live one, else the newest that has ended", () => {
  const { socket, connection, followed } = page();
  assert.equal(followed.find(NEWEST), undefined);
  const ended = [cluster("new", "stopped"), cluster("held", "live", "workers"), cluster("old", "stopped")];
  socket.say({ type: "clusters", clusters: ended });
  assert.equal(followed.find(NEWEST)?.id, "new");
  assert.equal(followed.find("old")?.id, "old");
  socket.say({ type: "clusters", clusters: [...ended, cluster("live", "live")] });
  assert.equal(followed.find(NEWEST)?.id, "live");
  connection.close();
});

test("a pane follows the notebook in front, whatever newer clusters there are", () => {
  const { socket, connection, fronts, followed } = page();
  const script = cluster("script", "live");
  const clusters = [
    script,
    cluster("b", "live", "driver", "kernel-b"),
    cluster("a", "live", "driver", "kernel-a"),
  ];
  socket.say({ type: "clusters", clusters });
  assert.equal(followed.find(IN_FRONT)?.id, "script"); // no notebook is open
  const seen = ["a", "b", "c"].map((name) => {
    fronts.front = { name: `${name}.ipynb`, kernel: `kernel-${name}` };
    return followed.find(IN_FRONT)?.id;
  });
  assert.deepEqual(seen, ["a", "b", undefined]);
  fronts.front = { name: "new.ipynb", kernel: "" }; // its kernel starts: a script's clusters have no kernel, too
  assert.equal(followed.find(IN_FRONT), undefined);
  assert.equal(followed.find(NEWEST)?.id, "script");
  assert.equal(followed.find("b")?.id, "b");
  connection.close();
});

test("a kernel that was restarted shows its live cluster, else the last one that has ended", () => {
  const { socket, connection, fronts, followed } = page();
  fronts.front = { name: "a.ipynb", kernel: "kernel-a" };
  const ended = [cluster("other", "live"), cluster("second", "stopped", "driver", "kernel-a")];
  socket.say({ type: "clusters", clusters: ended });
  assert.equal(followed.find(IN_FRONT)?.id, "second");
  assert.equal(followed.find("gone")?.id, "second");
  socket.say({ type: "clusters", clusters: [...ended, cluster("third", "live", "driver", "kernel-a")] });
  assert.equal(followed.find(IN_FRONT)?.id, "third");
  connection.close();
});
