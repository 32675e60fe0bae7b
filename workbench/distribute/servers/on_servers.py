"""Variables on parameter servers: one copy of each, which all processes read and update by messages to its server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from workbench.debugging import numerics
from workbench.device_spec import DeviceSpec
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import Array, as_array
from workbench.distribute.arrays.indexed_slices import IndexedSlices
from workbench.distribute.servers.client import Arrays, Request, ServerClient, client_of
from workbench.distribute.servers.function_optimizer import FunctionOptimizer
from workbench.distribute.values.distributed_values import Mirrored, PerReplica, select
from workbench.distribute.variables.checked_values import checked_update
from workbench.distribute.variables.placement import Placement, UpdateProgram, alone
from workbench.distribute.variables.programs import Update
from workbench.errors import InvalidArgumentError
from workbench.runtime.services.frames import Fields

if TYPE_CHECKING:
    from workbench.distribute.described_strategy import DescribedStrategy
    from workbench.distribute.variables.aggregation import VariableSynchronization
    from workbench.distribute.variables.described_variable import DescribedVariable
    from workbench.runtime.replica.env import ReplicaEnv


class OnServers(Placement):
    """One copy without aggregation: each update is applied separately, in the order of arrival."""

    by_replica = False

    @property
    def client(self) -> ServerClient:
        """This process's client of the servers."""
        return client_of(self.strategy.description.id)

    def kind(self, variable: DescribedVariable) -> str:
        """See `Placement.kind`."""
        return "ServerVariable"

    def whereabouts(self, variable: DescribedVariable) -> str:
        """See `Placement.whereabouts`."""
        return f"on ps:{variable.description.server}"

    def devices_in_words(self, variable: DescribedVariable) -> str:
        """See `Placement.devices_in_words`; servers have their own names."""
        return self.whereabouts(variable)

    def component_device(self, variable: DescribedVariable, rank: int) -> str:
        """See `Placement.component_device`."""
        server = variable.description.server
        return DeviceSpec("ps", 0, server, "CPU", 0).to_string()

    def place(self, variable: DescribedVariable, array: Array, forgotten: Sequence[str]) -> None:
        """See `Placement.place`."""
        if array.dtype.hasobject:
            raise TypeError(
                f"variable {variable.description.name!r} is of dtype object (text, for example), which parameter "
                f"servers do not keep; use numbers"
            )
        client = self.client
        if forgotten:
            for server in range(len(client.addresses)):
                client.write(server, {"method": "drop", "keys": list(forgotten)})
        d = variable.description
        client.write(d.server, {"method": "create", "key": d.key}, [np.asarray(array)])

    def read(self, variable: DescribedVariable) -> Array:
        """Reads the value; also in functions on workers, and within `strategy.run` there."""
        return self.common_value(variable)

    def common_value(self, variable: DescribedVariable) -> Array:
        """See `Placement.common_value`."""
        d = variable.description
        return self.client.read(d.server, {"method": "read", "key": d.key})[0]

    def gather(self, variable: DescribedVariable, indices: Array) -> Array:
        """Reads some rows; only these travel."""
        return self.gather_all([(variable, indices)])[0]

    def read_all(self, variables: Sequence[DescribedVariable]) -> list[Array]:
        """Reads several variables from all their servers at once."""
        requests = [_request(variable, {"method": "read"}) for variable in variables]
        return [array for (array,) in self.client.read_all(requests)]

    def gather_all(self, wanted: Sequence[tuple[DescribedVariable, Array]]) -> list[Array]:
        """Reads some rows of several variables from all their servers at once."""
        requests = [_request(variable, {"method": "gather"}, [indices]) for variable, indices in wanted]
        return [rows for (rows,) in self.client.read_all(requests)]

    def components(self, variable: DescribedVariable, ranks: Sequence[int] | None = None) -> list[Array]:
        """The one copy."""
        return [self.common_value(variable)] * (1 if ranks is None else len(ranks))

    def update(self, variable: DescribedVariable, how: Update, value: Any) -> None:
        """See `Placement.update`; also in functions on workers."""
        if isinstance(value, PerReplica):
            self.update_from_parts(variable, how, value)
            return
        if isinstance(value, Mirrored):
            value = value.values[0]
        self.put(variable, how, checked_update(variable, how, value))

    def update_from_parts(self, variable: DescribedVariable, how: Update, value: PerReplica) -> None:
        """See `Placement.update_from_parts`."""
        if len(value.values) != 1:
            raise InvalidArgumentError(
                f"{how} on variable {variable.name!r} with a value of {len(value.values)} replicas: it has one copy; "
                f"reduce the value first"
            )
        self.update(variable, how, value.values[0])

    def put(self, variable: DescribedVariable, how: Update, array: Array | IndexedSlices) -> None:
        """See `Placement.put`."""
        self.put_all(how, [(variable, array)])

    def put_all(
        self,
        how: Update,
        parts: Sequence[tuple[DescribedVariable, Array | IndexedSlices | Callable[[], Sequence[Array]]]],
    ) -> None:
        """As `put`, for several variables on all their servers at once.

        Args:
          how: The update.
          parts: Each variable and its value, or a function that makes the arrays when its turn comes, while other
            servers are already working.
        """
        client = self.client
        requests = []
        for variable, value in parts:
            fields = {"method": "update", "how": how, **client.last_read(_key(variable)), **_checked()}
            requests.append(_request(variable, fields, value if callable(value) else _arrays(value)))
        client.write_all(requests)

    def step_all(
        self,
        rule: dict[str, Any] | FunctionOptimizer,
        parts: Sequence[tuple[DescribedVariable, Array | IndexedSlices]],
        max_staleness: int | None = None,
    ) -> int:
        """Makes all servers apply an optimizer's step at once.

        Args:
          rule: See `rule_fields`; or a user's optimizer.
          parts: Variables and checked gradients.
          max_staleness: Skip a step if its variable has had more updates since it was last read here.

        Returns:
          The number of steps that were skipped as too stale.
        """
        client = self.client
        requests = []
        for variable, gradient in parts:
            if isinstance(rule, FunctionOptimizer):
                fields = {"method": "update", "how": "function", **rule.fields()}
                sent = [np.frombuffer(rule.pickled, np.uint8), *_arrays(gradient)]
            else:
                fields, sent = {"method": "update", "how": "step", "rule": rule}, _arrays(gradient)
            if max_staleness is not None and (read := client.stream.versions.get(_key(variable))) is not None:
                fields |= {"read": read, "max_staleness": max_staleness}
            else:
                fields |= client.last_read(_key(variable))
            requests.append(_request(variable, fields | _checked(), sent))
        return sum("staleness" in reply for reply in client.write_all(requests))

    def slots(
        self, initial: dict[str, float], parts: Sequence[DescribedVariable]
    ) -> list[tuple[int, list[Array]]]:
        """The number of steps of each variable, and its slots, which have their initial values before any step."""
        requests = [_request(variable, {"method": "slots", "slots": initial}) for variable in parts]
        return [(reply["steps"], slots) for reply, slots in self.client.ask_all(requests)]

    def set_slots(
        self, initial: dict[str, float], steps: int, parts: Sequence[tuple[DescribedVariable, list[Array]]]
    ) -> None:
        """Sets slots of variables to the result of `slots`."""
        fields = {"method": "update", "how": "set_slots", "slots": initial, "steps": steps, **_checked()}
        self.client.write_all([_request(variable, fields, slots) for variable, slots in parts])

    def for_update(
        self, variable: DescribedVariable | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The variable itself, and the only component of distributed values."""
        own = () if variable is None else (variable,)
        return (*own, *(select(value, 0) for value in args)), select(kwargs, 0)

    def run_update(
        self,
        program: UpdateProgram,
        fn: Callable[..., Any],
        own: tuple[Any, Any],
        group: bool,
        ranks: Sequence[int] | None = None,
    ) -> Any:
        """Calls the function here; the values that it reads and updates travel."""
        args, kwargs = own
        with contexts.cross_replica(self.strategy, "update"):
            return alone(fn(*args, **kwargs), group)

    def reseed(
        self, variables: Sequence[DescribedVariable], lost: Sequence[int], survivors: Sequence[int]
    ) -> None:
        """Does nothing, because servers restore themselves."""

    def update_together(
        self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any, site: str
    ) -> NoReturn:
        """Refuses, because functions on workers are not replicas of a group."""
        raise self._elsewhere(variable)

    def update_here(self, env: ReplicaEnv, variable: DescribedVariable, how: Update, value: Any) -> NoReturn:
        """See `update_together`."""
        raise self._elsewhere(variable)

    def call_update(self, env: ReplicaEnv, call: Callable[[], Any]) -> Any:
        """See `Placement.call_update`."""
        return call()

    def rank_here(self, env: ReplicaEnv) -> Any:
        """The rank of the only component."""
        return 0

    def reduced(self, env: ReplicaEnv, array: Array, op: str, site: str) -> Array:
        """Returns `array`, as there is nothing to reduce."""
        return array

    def _elsewhere(self, variable: DescribedVariable) -> RuntimeError:
        return RuntimeError(
            f"variable {variable.name!r} is on parameter servers and was used in a replica function of another "
            f"strategy; schedule the function with ClusterCoordinator.schedule"
        )


def placement_of(strategy: DescribedStrategy, synchronization: VariableSynchronization) -> Placement:
    """The placement of all variables on parameter servers; with one copy, ON_READ is the same as ON_WRITE."""
    return OnServers(strategy)


def _key(variable: DescribedVariable) -> str:
    return variable.description.key


def _request(variable: DescribedVariable, fields: Fields, arrays: Arrays = ()) -> Request:
    """The fields of a request about a variable."""
    d = variable.description
    return d.server, {**fields, "key": d.key}, arrays


def _checked() -> Fields:
    """If this thread is checked, makes a server refuse updates with a non-finite result; see `require_finite`."""
    sender = numerics.sender()
    return {"checked": sender} if sender else {}


def _arrays(value: Array | IndexedSlices) -> list[Array]:
    """The NumPy arrays to send for a value: the value itself, or rows and their indices."""
    parts = [value.values, value.indices] if isinstance(value, IndexedSlices) else [value]
    return [np.asarray(as_array(part)) for part in parts]
