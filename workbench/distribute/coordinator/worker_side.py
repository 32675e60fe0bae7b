"""WorkerSide: runs scheduled functions in the process of a worker."""

from __future__ import annotations

import pickle
import sys
import time
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from workbench import faults
from workbench.debugging import numerics
from workbench.debugging.dump.session import end_here, flush_here
from workbench.debugging.observing import Observation, Place
from workbench.distribute import contexts
from workbench.distribute.coordinator.worker_resources import WorkerResources, as_worker
from workbench.distribute.servers.client import ServerClient, ServerLost, known_client
from workbench.distribute.servers.streams import Stream, in_stream
from workbench.distribute.strategy_description import StrategyDescription, strategy_of
from workbench.errors import CaptureError, OutOfRangeError
from workbench.runtime.comm.failure_report import FailureReport, report
from workbench.runtime.comm.messages import dumps
from workbench.runtime.services.frames import Array, Fields
from workbench.runtime.services.service import Reply, ServiceAddress, own_network, start_service

if TYPE_CHECKING:
    from workbench.runtime.replica.env import ReplicaEnv

End: TypeAlias = bytes | FailureReport | int
"""The outcome of a call: its pickled result; its error; or the number of the server that it could not reach."""


class WorkerSide:
    """Runs functions one after the other."""

    def __init__(
        self, worker: int, host: str, strategy: StrategyDescription, addresses: list[ServiceAddress]
    ) -> None:
        """Connects to the parameter servers.

        Args:
          worker: Number of the worker.
          host: Name of its host.
          strategy: The strategy whose variables the functions use.
          addresses: Addresses of the parameter servers, in their order.
        """
        self._worker = worker
        self._host = host
        self._description = strategy
        known = known_client(strategy.id)  # the notebook's own client, if workers are threads of its process
        self._own_client = known is None
        self._client = known or ServerClient(strategy.id, addresses, own_network()[1])
        self._functions: dict[int, Any] = {}
        self._resources = WorkerResources(worker)

    def answer(self, fields: Fields, arrays: list[Array]) -> Reply:
        """Runs the calls of a request, or writes the data of a dump; see `Lane`."""
        if fields["method"] == "flush_dumps":
            flush_here(
                fields["root"],
                sources=fields["sources"],
                executions=fields["executions"],
                close=fields["close"],
            )
            return {}, []
        request = pickle.loads(arrays[0].data)
        self._client.follow(request["addresses"])
        self._resources.describe(request["resources"])
        for id in request["forgotten_resources"]:
            self._resources.forget(id)
        for id in request["forgotten_functions"]:
            self._functions.pop(id, None)
        strategy: Any = strategy_of(self._description)
        began = time.perf_counter()
        ends: list[End] = []
        with as_worker(self._resources), contexts.cross_replica(strategy, "scope"):
            for id, data in request["functions"].items():
                self._functions[id] = data  # the call unpickles it, so that errors belong to the call
            for number, function, arguments, observation in request["calls"]:
                stream = Stream(request["stream"], number, request["first_open"])
                ends.append(self._run(stream, function, arguments, observation))
                faults.fault("coordinator.after_call")
                if isinstance(ends[-1], FailureReport):
                    break  # the queue cancels the calls after it
        sys.stdout.flush()
        seconds = time.perf_counter() - began
        return {"seconds": seconds}, [np.frombuffer(pickle.dumps(ends, protocol=5), np.uint8)]

    def _run(self, stream: Stream, id: int, arguments: bytes, observation: bytes) -> End:
        try:
            with in_stream(stream):
                function = self._functions[id]
                if type(function) is bytes:
                    function = self._functions[id] = pickle.loads(function)
                observed: Observation | None = pickle.loads(observation) if observation else None
                numerics.follow(observed is not None and observed.checked)
                args, kwargs = pickle.loads(arguments) if arguments else ((), {})
                if observed is None:
                    result = function(*args, **kwargs)
                else:
                    result = observed.call(function, args, kwargs, self._place(function, stream.call))
            return _pickled(function, result)
        except ServerLost as lost:
            return lost.server
        except StopIteration as error:
            end = OutOfRangeError("the iterator has no further element")
            return report(self._worker, end.with_traceback(error.__traceback__))
        except BaseException as error:
            return report(self._worker, error)

    def _place(self, function: Any, number: int) -> Place:
        name = _name(function)
        text = f"on worker {self._worker}, in {name}"
        return Place(text, f"what {name} returned", self._host, self._worker, number)

    def close(self) -> None:
        """Called when the coordinator has ended."""
        self._resources.close()
        if self._own_client:
            self._client.close()
        end_here()  # ending a dump later finds nothing here


def start_worker(
    env: ReplicaEnv, name: str, worker: int, strategy: StrategyDescription, addresses: list[ServiceAddress]
) -> ServiceAddress:
    """The program that makes a process a worker.

    Args:
      env: The replica that runs the program.
      name: Name of the service.
      worker: Number of the worker.
      strategy: The strategy whose variables its functions use.
      addresses: Addresses of the parameter servers, in their order.
    """
    return start_service(name, WorkerSide(worker, env.device.host, strategy, addresses))


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _pickled(function: Any, result: Any) -> bytes:
    try:
        return dumps(result)
    except Exception as error:
        raise CaptureError(
            f"what {_name(function)} returned, of type {type(result).__name__}, cannot travel to the notebook: "
            f"{error}; return arrays, numbers, or structures of them"
        ) from error
