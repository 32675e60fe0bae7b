"""Variable: an array that persists between steps, on every replica of a strategy, or on the host."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
import optree

from workbench.arguments import optional_flag, text
from workbench.backends.conversion import conversion, holds
from workbench.backends.numpy import STRING, as_dtype, dtype_text
from workbench.distribute import contexts
from workbench.distribute.arrays.as_array import Array, as_array, describe
from workbench.distribute.arrays.plain_device import device_here
from workbench.distribute.described_strategy import DescribedStrategy
from workbench.distribute.identity import new_id
from workbench.distribute.placement_log import log_placement
from workbench.distribute.strategy_description import strategy_of
from workbench.distribute.values.distributed_values import DistributedValues, Mirrored, PerReplica
from workbench.distribute.variables import programs
from workbench.distribute.variables.aggregation import VariableAggregation, VariableSynchronization, member
from workbench.distribute.variables.checked_values import checked_rows, checked_update
from workbench.distribute.variables.component import VariableComponent
from workbench.distribute.variables.described_variable import DescribedVariable
from workbench.distribute.variables.placement import Placement
from workbench.distribute.variables.programs import Update
from workbench.distribute.variables.variable_description import VariableDescription
from workbench.errors import InvalidArgumentError, TracingError
from workbench.runtime.replica.env import current_env
from workbench.runtime.user_code.call_sites import call_site

if TYPE_CHECKING:
    from workbench.runtime.driver.group import Group
    from workbench.runtime.replica.env import ReplicaEnv

_AUTO, _ON_READ = VariableSynchronization.AUTO, VariableSynchronization.ON_READ
DEFAULT_NAME: Final = "Variable"
_NONE, _SUM, _MEAN = VariableAggregation.NONE, VariableAggregation.SUM, VariableAggregation.MEAN
_FIRST = VariableAggregation.ONLY_FIRST_REPLICA
# Variables of this process by key, so that a variable that travels to a replica and back is the same object.
_known: weakref.WeakValueDictionary[str, Variable] = weakref.WeakValueDictionary()


class Variable(DescribedVariable, DistributedValues):
    """An array that keeps its value between steps (as tf.Variable under a tf.distribute.Strategy).

    Created in `strategy.scope()`, it has a component on every replica. In replica functions it behaves like the
    replica's component, elsewhere like the common value. Outside scopes it is a plain variable on the host.

    Args:
      initial_value: An array, a number, nested lists, or a function without arguments that returns one of them. The
        function is called once, and every component starts with its result. Python numbers become int32 and float32.
      trainable: Whether training should change the variable; by default True, except for ON_READ.
      name: A name that views and errors show; "Variable" by default.
      dtype: The dtype to which the initial value is converted.
      synchronization: ON_WRITE (and AUTO) keeps the components equal. ON_READ lets replicas change their own components
        and aggregates them when you read the variable outside replica functions.
      aggregation: How to combine the values that replicas assign (ON_WRITE), or the components (ON_READ).
      constraint: A function that an optimizer applies to the value after each update. The variable only stores it.

    Raises:
      ValueError: if synchronization is NONE in a scope, aggregation is MEAN for an integer variable, or `constraint`
        is not a function.

    >>> with strategy.scope():
    ...     w = wb.Variable([1.0, 2.0], name="w", aggregation="MEAN")
    >>> def step():
    ...     w.assign_add([1.0, wb.distribute.get_replica_context().replica_id_in_sync_group])
    >>> strategy.run(step)
    >>> w.numpy()
    array([2. , 2.5], dtype=float32)
    """

    __slots__ = ("__dict__",)
    travels_by_id = True

    def __new__(cls, *args: Any, **kwargs: Any) -> Variable:
        """A new variable; in a replica function, the one that the notebook has created for all replicas."""
        variable = object.__new__(cls)
        if isinstance(context := contexts.thread.context, contexts.CrossReplica):
            divided = context.strategy.divided(*args, **kwargs)
            if divided is not None:
                return divided  # type: ignore[no-any-return]  # a container of variables, which is not one
        if contexts.in_replica_function():
            variable.__init__(*args, **kwargs)  # type: ignore[misc]  # checks, and has the notebook create it
            return variable._made
        return variable

    def __init__(
        self,
        initial_value: Any,
        trainable: bool | None = None,
        *,
        name: str | None = None,
        dtype: Any = None,
        synchronization: VariableSynchronization | str = VariableSynchronization.AUTO,
        aggregation: VariableAggregation | str = VariableAggregation.NONE,
        constraint: Callable[[Any], Any] | None = None,
    ) -> None:
        if "_key" in self.__dict__:
            return  # `__new__` returned the notebook's variable, and Python calls this again
        name = DEFAULT_NAME if name is None else name
        text(name, "the name of a variable")
        if constraint is not None and not callable(constraint):
            raise ValueError(f"variable {name!r}: constraint must be None or a function, got {constraint!r}")
        trainable = optional_flag(trainable, f"variable {name!r}: trainable")
        when = member(VariableSynchronization, synchronization)
        how = member(VariableAggregation, aggregation)
        context = contexts.thread.context
        env = current_env()
        if env is not None and env.traced:
            raise TracingError(
                "wb.Variable(...) was called inside a traced replica function; create it once, in strategy.scope(), "
                "outside of the function"
            )
        strategy = None if context is None or context.strategy.is_default else context.strategy
        assert strategy is None or isinstance(strategy, DescribedStrategy)
        array = initial_array(initial_value, dtype)
        if strategy is not None:
            _check_kind(when, how, array.dtype, name)
            when = _ON_READ if when is _ON_READ else VariableSynchronization.ON_WRITE
        self._describe(
            VariableDescription(
                key=f"{name}@{new_id()}",
                strategy=None if strategy is None else strategy.description,
                name=name,
                shape=array.shape,
                dtype=array.dtype,
                trainable=when is not _ON_READ if trainable is None else trainable,
                synchronization=when,
                aggregation=how,
                constrained=constraint is not None,
                server=0 if strategy is None else strategy.next_server(),
            ),
            strategy,
        )
        self._constraint = constraint
        self._local = array if strategy is None else None
        self.plain_device = device_here() if strategy is None else ""
        if strategy is None or type(context) is contexts.CrossReplica:
            _known[self._key] = self
            if strategy is not None:
                assert self.placement is not None
                self.placement.create(self, array)
                log_placement(strategy, self._placed)
        elif constraint is not None:
            raise RuntimeError(
                f"variable {name!r}: a variable with a constraint cannot be created in a replica function, the "
                f"constraint stays in the notebook; create it in strategy.scope(), outside of the function"
            )
        else:
            self._create_inside(array)

    def _describe(self, description: VariableDescription, strategy: DescribedStrategy | None) -> None:
        self.description = description
        self._key = description.key
        self._strategy = strategy
        self.placement: Placement | None = None
        if strategy is not None:
            self.placement = strategy.description.placement_of(strategy, description.synchronization)

    def _placed(self) -> str:
        d, placement = self.description, self.placement
        assert placement is not None
        shape = ",".join(map(str, d.shape))
        return f"variable {self.name!r} {d.dtype.name}[{shape}] is {placement.devices_in_words(self)}"

    def _create_inside(self, array: Array) -> None:
        """Called in a replica function: all replicas pause, and the driver creates one variable for them."""
        context = contexts.entered_replica()
        assert context is not None
        d = self.description
        options = (d.name, d.trainable, d.synchronization, d.aggregation)
        self._made: Variable = context.merge_call(_create_merged, (array, options))

    def _identity(self) -> tuple[Any, ...]:
        return (self._key,)

    # -- what it is ---------------------------------------------------------------------------------------------

    @property
    def strategy(self) -> DescribedStrategy | None:
        """The strategy in whose scope it was created, or None."""
        return self._strategy

    distribute_strategy = strategy

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function given as `constraint`, or None.

        Raises:
          RuntimeError: on a replica in another process, because the function stays in the notebook.
        """
        if self.description.constrained and self._constraint is None:
            raise RuntimeError(
                f"the constraint of variable {self.name!r} stays in the notebook; call the function itself in the "
                f"replica function instead"
            )
        return self._constraint

    @property
    def kind(self) -> str:
        """The kind of variable, in a word: "MirroredVariable", "SyncOnReadVariable", "CentralVariable"."""
        return "Variable" if self.placement is None else self.placement.kind(self)

    @property
    def whereabouts(self) -> str:
        """The places of its components in words, such as "on 2 replicas"; "" for a plain variable."""
        return "" if self.placement is None else self.placement.whereabouts(self)

    @property
    def device(self) -> str:
        """Full name of the current component's device; that of replica 0 outside replica functions."""
        env = current_env()
        if (
            env is not None
            and self._strategy is not None
            and self._strategy.description.parameter_device is None
        ):
            return env.device.string
        return self.values[0].device

    @property
    def values(self) -> tuple[VariableComponent, ...]:
        """The components, one per replica; a plain variable, and one in central storage, has one."""
        count = 1 if self._strategy is None else len(self._strategy.parameter_devices)
        return tuple(VariableComponent(self, rank) for rank in range(count))

    @property
    def handle(self) -> None:
        """Always None, because the runtime's handles stand for immutable values."""
        return None

    def values_for(self, size: int) -> tuple[VariableComponent, ...]:
        """The components, if there is one for each of `size` replicas; see `DistributedValues.values_for`.

        Raises:
          InvalidArgumentError: if there are more or fewer.
        """
        components = self.values
        if len(components) != size:
            raise InvalidArgumentError(
                f"variable {self.name!r} has {len(components)} of its own components, not one for each of {size} "
                f"replicas; use its value: variable.read_value()"
            )
        return components

    def handle_for(self, group: Group) -> NoReturn:
        """Refuses, because variables travel to replica functions as themselves.

        Raises:
          TypeError: always.
        """
        raise TypeError(
            f"variable {self.name!r} has no handle: pass the variable itself as an argument, or one of its values, "
            f"variable.read_value()"
        )

    def component_text(self, rank: int) -> str:
        """A component in one line; without its value, because this does no I/O."""
        return repr(self.values[rank])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a variable without dimensions")
        return self.shape[0]

    # -- reading and writing ------------------------------------------------------------------------------------

    def _array(self) -> Array:
        if self._local is not None:
            return self._local
        env = current_env()
        if env is None or contexts.merging_env() is not None:
            assert self.placement is not None
            return self.placement.read(self)
        return self.own_component(env)

    def own_component(self, env: ReplicaEnv) -> Array:
        """The component of the replica that the calling thread runs."""
        return programs.component(self._checked(env), self._key)

    def _update(self, how: Update, value: Any) -> None:
        env = current_env()
        if self._local is not None:
            if isinstance(
                value, PerReplica
            ):  # of the default strategy, or of a strategy with a single replica
                (value,) = value.values_for(1)
            array = checked_update(self, how, value)
            store = {self._key: self._local}
            programs.update(_PlainEnv(store), self._key, how, array)  # type: ignore[arg-type]
            self._local = store[self._key]
            return
        placement = self.placement
        assert placement is not None
        if env is None or contexts.merging_env() is not None:
            placement.update(self, how, value)
        elif isinstance(contexts.thread.context, contexts.CrossReplica):  # inside an update function
            placement.update_here(self._checked(env), self, how, value)
        else:
            site = call_site(sys._getframe(2))
            placement.update_together(self._checked(env), self, how, value, site)

    def _checked(self, env: ReplicaEnv) -> ReplicaEnv:
        """`env`, if it belongs to the variable's own strategy."""
        context = contexts.thread.context
        if context is None or context.strategy is not self._strategy:
            raise RuntimeError(
                f"variable {self.name!r} belongs to {self._strategy!r} and cannot be used in a replica function of "
                f"another strategy, or on a thread that a replica function started; create it in the scope of the "
                f"strategy that runs the function"
            )
        return env

    def _scatter_nd(self, how: str, indices: Any, updates: Any, where: str) -> None:
        if self._strategy is not None:
            raise NotImplementedError(no_coordinates(where))
        super()._scatter_nd(how, indices, updates, where)

    def sparse_read(self, indices: Any, name: str | None = None) -> Array:
        """Reads rows of the value: `v[indices]`. For a variable on parameter servers, only these rows travel.

        Args:
          indices: Integers of any shape.
          name: Without effect.

        Returns:
          An array of shape `indices.shape + v.shape[1:]`.

        Raises:
          InvalidArgumentError: if an index is out of range.
        """
        wanted = checked_rows(self, indices)
        env = current_env()
        if self.placement is None or (env is not None and contexts.merging_env() is None):
            rows: Array = self._array()[wanted]
            return rows
        return self.placement.gather(self, wanted)

    # -- travelling and showing ---------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        """A new variable of the same strategy with the same components, for `copy.deepcopy` of a model."""
        if current_env() is not None:
            raise RuntimeError(
                f"variable {self.name!r} cannot be copied in a replica function: a copy is a new variable; copy it in "
                f"the notebook"
            )
        d, strategy = self.description, self._strategy
        copied = object.__new__(Variable)  # whole, even where a partitioner would divide new variables
        with contexts.entered(None if strategy is None else contexts.CrossReplica(strategy, "set")):
            copied.__init__(  # type: ignore[misc]
                self.values[0].read_value(),
                trainable=d.trainable,
                name=d.name,
                dtype=d.dtype,
                synchronization=d.synchronization,
                aggregation=d.aggregation,
                constraint=self._constraint,
            )
        if len(self.values) > 1:
            copied.assign(PerReplica([component.read_value() for component in self.values]))
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return variable_of, (self.description,)

    def __repr__(self) -> str:
        d = self.description
        if self._local is not None:
            return f"<Variable {self.name!r} {describe(self._local)}>"
        extent = ",".join(map(str, d.shape))
        aggregation = "" if d.aggregation is _NONE else f", aggregation {d.aggregation.name}"
        return f"<{self.kind} {self.name!r} {d.dtype.name}[{extent}] {self.whereabouts}{aggregation}>"


def no_coordinates(where: str) -> str:
    """Explains why a strategy's variables, as tf.distribute's, cannot be changed by coordinates.

    Args:
      where: The method and the variable.
    """
    return (
        f"{where}: a strategy's variables change as a whole or by rows; use assign or a scatter update such as "
        f"scatter_add, or strategy.extended.update, whose function gets each component"
    )


def variable_of(description: VariableDescription) -> Variable:
    """The described variable: the object that this process knows, or a stand-in."""
    known = _known.get(description.key)
    if known is None:
        assert description.strategy is not None
        known = object.__new__(Variable)
        known._local = known._constraint = None
        strategy = strategy_of(description.strategy)
        assert isinstance(strategy, DescribedStrategy)
        known._describe(description, strategy)
        _known[description.key] = known
    return known


class _PlainEnv:
    """An env with only a store, which suffices for updating a plain variable."""

    __slots__ = ("store",)
    traced = False

    def __init__(self, store: dict[str, Array]) -> None:
        self.store = store


def initial_array(initial_value: Any, dtype: Any) -> Array:
    """The initial array of a variable; calls `initial_value` if it is a function."""
    value = initial_value() if isinstance(initial_value, Callable) else initial_value  # type: ignore[arg-type]
    if isinstance(value, PerReplica) and len(value) == 1:
        (value,) = value.values
    if isinstance(value, (PerReplica, Mirrored)):
        raise TypeError(
            f"the initial value of a variable is one value for all replicas, got {type(value).__name__}; give one of "
            f"its components, or assign in a replica function"
        )
    wanted = None if dtype is None else as_dtype(dtype).newbyteorder("=")
    array = as_array(value, wanted)
    if wanted is None and array.dtype.kind in "OUS":
        array = as_array(array, STRING)
    array = np.array(array)
    if wanted is not None:
        if not holds(wanted, array):
            raise TypeError(
                f"the initial value of a variable: {dtype_text(array.dtype)} does not fit {dtype_text(wanted)}; "
                f"{conversion(wanted, 'np.asarray(value)')}, or leave dtype out"
            )
        array = array.astype(wanted, copy=False)
    return array


def _check_kind(
    when: VariableSynchronization, how: VariableAggregation, dtype: np.dtype[Any], name: str
) -> None:
    if when is VariableSynchronization.NONE:
        raise ValueError(
            f"variable {name!r}: synchronization NONE is not possible in a strategy's scope; use ON_READ for "
            f"components that replicas change on their own, or ON_WRITE with aggregation NONE"
        )
    if how is _MEAN and dtype.kind in "biucOSU":
        raise ValueError(
            f"variable {name!r}: aggregation MEAN needs a floating dtype, a mean of {dtype_text(dtype)} is not one; "
            f"use dtype='float32', or aggregation SUM or ONLY_FIRST_REPLICA"
        )


def _create_merged(
    strategy: DescribedStrategy, initial_value: PerReplica, options: tuple[PerReplica, ...]
) -> Variable:
    """Merge function for variables created in replica functions: all get replica 0's value."""
    names = options[0].values
    if any(other != names[0] for other in names):
        raise RuntimeError(
            f"replicas created one variable under different names, {', '.join(map(repr, names))}: it is one variable "
            f"with a component on each replica; give it the same name on all of them"
        )
    name, trainable, synchronization, aggregation = (option.values[0] for option in options)
    variable = Variable(
        initial_value.values[0],
        trainable=trainable,
        name=name,
        synchronization=synchronization,
        aggregation=aggregation,
    )
    strategy.kept.hold(variable)
    return variable


# In the result of a replica function, a variable is part of the structure, so `run` returns the variable itself.
_as_node: Any = optree.register_pytree_node  # optree's types know only collections
_as_node(
    Variable,
    lambda variable: ((), variable.description, ()),
    lambda description, _: variable_of(description),
    namespace="workbench",
)
