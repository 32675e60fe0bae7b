"""Random device scopes, and checks of numbers that are switched on and off."""

from __future__ import annotations

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

_PARTS = (
    *(
        "/job:chief",
        "/job:ps",
        "/job:localhost",
        "/replica:0",
        "/task:0",
        "/task:1",
        "/CPU:0",
        "CPU:1",
        "/cpu:2",
    ),
    *(
        "/device:CPU:3",
        "/device:GPU:1",
        "/gpu:*",
        "/device:TPU:0",
        "/device:CPU:*",
        "CPU",
        "/gizmo:0",
        "/device:x:1",
    ),
)
_NUMBERS = ("1.0", "0.0", "-1.0", "4.0", "0.25")


def scopes(values: Values) -> Json:
    """The next case of nested scopes."""
    kind = values.either("device_scope", "device_scope", "device_scope_eager")
    return {"kind": kind, "scopes": [_scope(values) for _ in range(values.either(0, 1, 1, 2, 2, 3))]}


def _scope(values: Values) -> Json:
    fields = {
        "job": values.either("chief", "ps", "localhost", None),
        "replica": values.either(0, None, None),
        "task": values.either(0, 1, None),
        "device_type": values.either("CPU", "gpu", None),
        "device_index": values.either(0, 2, None),
    }
    text = "".join(values.either(*_PARTS) for _ in range(values.either(1, 1, 2, 3)))
    return values.either(
        text, text, text, None, "", {"spec": {k: v for k, v in fields.items() if v is not None}}
    )


def checks(values: Values) -> Json:
    """The next program that checks numbers."""
    switches = ("enable_check_numerics()", "enable_check_numerics()", "disable_check_numerics()")
    lines = [values.either(*switches) for _ in range(values.either(1, 2, 3))]
    lines += values.either(
        [],
        ["try:", f"    {_operation(values)}", "except Exception:", "    pass"],
        [f"x = {_operation(values)}"],
    )
    return {"kind": "numeric_check_program", "code": [*lines, f"result = {_operation(values)}"]}


def _operation(values: Values) -> str:
    def array() -> str:
        dtype = values.either("", "", ", 'float64'", ", 'float16'")
        numbers = ", ".join(values.either(*_NUMBERS) for _ in range(values.either(1, 2, 3)))
        return values.either(f"const([{numbers}]{dtype})", f"const({values.either(*_NUMBERS)}{dtype})")

    same = array()
    return values.either(
        f"tf_sqrt({array()})",
        f"tf_log({array()})",
        f"divide({same}, {same})",
        f"divide(const([1.0]), const([{values.either(*_NUMBERS)}]))",
        "divide(const([4, 2]), const([2, 1]))",
    )
