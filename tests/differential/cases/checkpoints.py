"""Random programs over checkpoints and their managers: what is saved, what is restored from it, what is kept."""

from __future__ import annotations

from tests.differential.cases.values import Values
from tests.reference.interpreter.codec import Json

_INITIAL = ("1.0", "[1.0, 2.0]", "[[1, 2], [3, 4]]", "7")
Lines = list[str]


def states(values: Values) -> Json:
    """The next program that saves one state, and restores it to another that is like it, or not quite."""
    replicas = values.either(1, 1, 2, 3)
    names = values.random.sample(["a", "b", "c"], values.either(1, 2, 3))
    saved = {name: _part(values) for name in names}
    if values.rarely(0.15):
        saved = {"": f"Thing({values.either('r', 'a_', 'x')}={_part(values, 1)})", **saved}
    program = {name: part for name, part in saved.items() if not values.rarely(0.12)}
    if values.rarely(0.12):
        program["d"] = _part(values)
    plain = [name for name in program if program[name].startswith("{}")]
    if values.rarely(0.2) and plain:
        program[values.either(*plain)] = values.either("{}(3.0)", "{}([3, 4, 5])", "{}(np.float64(3))")
    counted = values.rarely(0.6)  # `save` saves the counter, and `restore` asserts it
    times = values.either(1, 1, 3)
    how = f"[c.save(folder + '/x') for _ in range({times})][-1]" if counted else "c.write(folder + '/w')"
    asserted = values.either("assert_consumed", "assert_existing_objects_matched")
    back = values.either(
        f"d.{'restore' if counted else 'read'}(path).assert_consumed()",
        *(f"partly(d, path).{asserted}()",) * counted,
        f"partly(d, path).{'expect_partial' if counted else 'assert_nontrivial_match'}()",
        "partly(d, path).expect_partial()",
        "d.read(path).expect_partial()" if program == saved else "partly(d, path).expect_partial()",
    )
    # In TensorFlow, `read` restores the counter when it is first used.
    counts = "int(c.save_counter)" + ("" if ".read" in back else ", int(d.save_counter)")
    path = "path" if not values.rarely(0.06) else values.either("None", "folder + '/missing'")
    return {
        "kind": "checkpoint_program",
        "replicas": replicas,
        "code": [
            *_made("c", saved, values, replicas),
            f"path = {how}",
            *_made("d", {name: _other(part) for name, part in program.items()}, values, replicas),
            back.replace("path", path),
            f"result = [shown(d), {counts}, name_of(path)]",
        ],
    }


def managers(values: Values) -> Json:
    """The next program that saves by a manager, at times begun anew, and looks at what is there."""
    options = [f"max_to_keep={values.either('None', 1, 2, 2, 3)}"]
    if values.rarely(0.3):
        options.append(f"keep_checkpoint_every_n_hours={values.either('1e-9', '1000')}")
    if values.rarely(0.3):
        options.append(f"checkpoint_name='{values.either('model', 'a-b', 'x_1')}'")
    counted = values.rarely(0.5)
    if counted:
        options.append("step_counter=step")
    if (counted and values.rarely(0.9)) or values.rarely(0.04):
        options.append(f"checkpoint_interval={values.either(1, 2, 3, 10)}")
        if values.rarely(0.2):
            options.append(f"last_checkpoint_step={values.either(0, 1, 2)}")
    if values.rarely(0.4):
        options.append("init_fn=lambda: step.assign(100)")
    numbered = values.rarely(0.3)
    made = [
        "step, v = Variable(0), Variable([1.0, 2.0])",
        "c = Checkpoint(step=step, v=v)",
        f"m = CheckpointManager(c, folder, {', '.join(options)})",
        "said = []",
        "told.append(said)",
        "said.append(name_of(m.restore_or_initialize()))",
    ]
    code = ["told, paths = [], []", *made]
    for _ in range(values.either(1, 2, 3, 4)):
        more = values.either([], [], made, ["m.restore_or_initialize()"])
        count, gain = values.either(1, 2, 3), values.either(0, 1, 2)
        number = (
            f"checkpoint_number={values.either('step', 'int(step) * 2', 'step // 2')}" if numbered else ""
        )
        check = values.either("", "", "check_interval=False")
        given = ", ".join(each for each in (number, check) if each)
        code += [
            *more,
            f"for _ in range({count}):",
            f"    step.assign_add({gain})",
            "    v.assign_add([1.0, 0.5])",
            f"    paths.append(m.save({given}))",
            "said.append([name_of(path) for path in m.checkpoints])",
        ]
    code += [
        "left = sorted({name_of(path) for path in paths if path and there(path)})",
        "same = [name_of(m.latest_checkpoint), name_of(latest_checkpoint(folder)), m.checkpoint_interval]",
        "result = [told, [name_of(path) for path in paths], left, same, shown(c), int(c.save_counter)]",
    ]
    return {"kind": "checkpoint_program", "replicas": 1, "code": code}


def _part(values: Values, depth: int = 0) -> str:
    """An expression for a part of the state, in which `{}` stands for the kind of variable."""
    initial, dtype = values.either(*_INITIAL), values.either("", "", ", dtype='float64'")
    variable = f"{{}}({initial}{dtype})"
    if depth > 1 or values.rarely(0.5):
        return variable
    inner = [_part(values, depth + 1) for _ in range(values.either(1, 1, 2))]
    named = ", ".join(f"{name}={part}" for name, part in zip("xyz", inner, strict=False))
    return str(
        values.either(
            f"[{', '.join(inner)}]",
            f"({', '.join(inner)},)",
            f"dict({named})",
            f"Thing({named})",
            f"Checkpoint({named})",
            "iterator()",
        )
    )


def _other(part: str) -> str:
    """The same part with other values."""
    for value, other in {"1.0": "5.0", "2.0": "6.0", "[1, 2], [3, 4]": "[8, 8], [8, 8]", "(7": "(9"}.items():
        part = part.replace(value, other)
    return part


def _made(name: str, parts: dict[str, str], values: Values, replicas: int) -> Lines:
    kind = "Variable" if replicas == 1 else values.either("Variable", "mirrored", "on_read")
    named = ((f"{key}=" if key else "", part) for key, part in parts.items())  # the root has no name
    given = ", ".join(key + part.replace("{}", kind) for key, part in named)
    return ["with strategy.scope():", f"    {name} = Checkpoint({given})"]
