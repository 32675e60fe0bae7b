"""TensorFlow's ParameterServerStrategy: scheduled functions with 1 server and 2 workers, rows of a table on 2 servers.

Servers and workers run in a process each, or, with `--servers inprocess`, in threads of the coordinator's.
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["GRPC_FAIL_FAST"] = "use_caller"

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from tests.benchmarks import server_cases as cases
from tests.benchmarks.measure import Script

THREADS = 4
"""Between operations: with fewer, servers in one process wait for each other without end on a small machine."""


@contextmanager
def cluster(servers: int, inprocess: bool) -> Iterator[Any]:
    """A resolver of running servers and workers."""
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(servers + cases.WORKERS)]
    addresses = [f"127.0.0.1:{sock.getsockname()[1]}" for sock in listening]
    for sock in listening:
        sock.close()
    spec = {"ps": addresses[:servers], "worker": addresses[servers:]}
    tasks = [(job, number) for job, found in spec.items() for number in range(len(found))]
    processes = []
    if inprocess:
        kept = [serve(spec, job, number) for job, number in tasks]  # they serve while a reference exists
    else:
        kept = []
        command = [sys.executable, "-m", "tests.benchmarks.peers.tf_servers", "--cluster", repr(spec)]
        processes = [
            subprocess.Popen([*command, "--task", f"{job}:{number}"], stdin=subprocess.DEVNULL)
            for job, number in tasks
        ]
    try:
        yield tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(spec), rpc_layer="grpc"
        )
    finally:
        kept.clear()
        for process in processes:
            process.kill()
            process.wait()


def serve(spec: dict[str, list[str]], job: str, number: int) -> Any:
    """One running server or worker."""
    config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=THREADS)
    return tf.distribute.Server(
        tf.train.ClusterSpec(spec), job_name=job, task_index=number, protocol="grpc", config=config
    )


def functions(script: Script, who: str, inprocess: bool) -> None:
    """Functions that each add to a variable and read it."""
    with cluster(1, inprocess) as resolver:
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            v = tf.Variable(0.0)

        @tf.function
        def step() -> Any:
            v.assign_add(1.0)
            return v.read_value()

        cases.measure_functions(
            script, who, lambda: coordinator.schedule(step), coordinator.join, lambda value: value.fetch()
        )


def rows(script: Script, who: str, inprocess: bool) -> None:
    """Look-ups of rows of a table that two servers share, and updates of them, on a worker."""
    with cluster(2, inprocess) as resolver:
        partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
        strategy = tf.distribute.ParameterServerStrategy(resolver, partitioner)
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            table = tf.Variable(tf.zeros((cases.ROWS, cases.WIDTH)), name="table")
        random = np.random.default_rng(0)
        ids = tf.constant(random.integers(0, cases.ROWS, (cases.IN_ONE, cases.BATCH)))

        @tf.function
        def look_up(ids: Any) -> Any:
            total = tf.constant(0.0)
            for number in tf.range(cases.IN_ONE):
                tf.autograph.experimental.set_loop_options(parallel_iterations=1)
                total += tf.nn.embedding_lookup(table, ids[number])[0, 0]
            return total

        @tf.function
        def scatter(ids: Any) -> Any:
            values = tf.ones((cases.BATCH, cases.WIDTH))
            for number in tf.range(cases.IN_ONE):
                tf.autograph.experimental.set_loop_options(parallel_iterations=1)
                table.scatter_add(tf.IndexedSlices(values, ids[number]))
            return tf.constant(0.0)

        for what, function in ((cases.LOOKUP, look_up), (cases.SCATTER, scatter)):
            cases.measure_rows(
                script, who, what, lambda f=function: coordinator.schedule(f, args=(ids,)).fetch()
            )


def main() -> None:
    """Measures functions, then rows; with `--task`, is one of the servers."""
    script = Script("servers", __doc__, servers="processes", cluster="", task="")
    tf.get_logger().setLevel("ERROR")
    if script.options.task:
        import ast

        job, _, number = script.options.task.partition(":")
        serve(ast.literal_eval(script.options.cluster), job, int(number)).join()
    inprocess = script.options.servers == "inprocess"
    who = cases.PEERS[script.options.servers]
    functions(script, who, inprocess)
    rows(script, who, inprocess)
    sys.stdout.flush()
    os._exit(0)  # the servers' threads would delay the exit


if __name__ == "__main__":
    main()
