"""Texts of programs about clusters, resolvers, devices and partitioners, with arguments and environments of all kinds."""

# ruff: noqa: E501 - each line has one program, or several

from __future__ import annotations

import json
from typing import Any

from tests.differential.programs import Drawn

_ODD = (
    "None", "0", "1", "-1", "2", "1.0", "1.5", "True", "''", "'a'", "'1'", "'-1'", "' 1'", "'1.5'", "[]", "[1]", "['a']", "()", "{}", "{'a': 1}", "object()", "b'a'", "float('nan')", "float('inf')",
    "np.int64(1)", "np.array(1)", "np.array([1])", "np.float32(1)", "np.str_('a')", "2 ** 31", "2 ** 63", "len", "int", "1j", "set()", "frozenset({1})", "range(2)", "'worker'", "'ps'",
)  # fmt: skip
_JOBS = ("worker", "ps", "chief", "evaluator", "master", "a-b", "", "1", "é", "wor ker")
_ADDRESSES = ("a:1", "b:2", "10.0.0.1:80", "[::1]:80", "host", "", "a:b:c", "x:99999", "é:1", " a:1")


class ClusterPrograms(Drawn):
    """Makes programs that describe clusters and ask about them; many of their arguments do not fit."""

    def next(self) -> str:
        """The next program, an expression."""
        make = self._random.choice(
            (self._spec, self._tf_config, self._tf_config, self._slurm, self._slurm, self._simple, self._union, self._device, self._device, self._partitioner, self._partitioner)
        )  # fmt: skip
        return make()

    def _rarely(self, odd: object, usual: object) -> str:
        return str(odd if self._random.random() < 0.15 else usual)

    def _odd(self) -> str:
        return self._either(*_ODD)

    def _job(self) -> str:
        usual = self._either(*map(repr, _JOBS[:5]))
        return self._rarely(self._either(*map(repr, _JOBS), self._odd()), usual)

    def _index(self) -> str:
        return self._rarely(self._odd(), self._either("0", "1", "2", "None"))

    def _asked(self, made: str, *questions: str) -> str:
        some = [self._random.choice(questions) for _ in range(self._number(2, 6))]
        return f"asked(lambda: {made}, {', '.join(f'lambda x: {question}' for question in some)})"

    # -- specs ------------------------------------------------------------------------------------------------------

    def _tasks(self) -> str:
        count = self._number(0, 3)
        addresses = [self._rarely(self._odd(), self._either(*map(repr, _ADDRESSES))) for _ in range(count)]
        numbers = [self._rarely(self._odd(), self._number(0, 4)) for _ in range(count)]
        listed = f"[{', '.join(addresses)}]"
        given = ", ".join(f"{n}: {a}" for n, a in zip(numbers, addresses, strict=True))
        return self._either(
            listed, listed, f"({', '.join([*addresses, ''])})" if addresses else "()", f"{{{given}}}", self._rarely(self._odd(), listed), f"np.array({listed})" if self._random.random() < 0.1 else listed, f"iter({listed})" if self._random.random() < 0.05 else listed,
        )  # fmt: skip

    def _cluster(self) -> str:
        jobs = [self._job() for _ in range(self._number(0, 3))]
        return f"{{{', '.join(f'{job}: {self._tasks()}' for job in jobs)}}}"

    def _made_spec(self) -> str:
        cluster = self._cluster()
        return self._either(
            f"ClusterSpec({cluster})", f"ClusterSpec({cluster})", f"ClusterSpec(ClusterSpec({cluster}))", f"ClusterSpec(cluster={cluster})", self._rarely(f"ClusterSpec({self._odd()})", f"ClusterSpec({cluster})"), f"ClusterSpec(ClusterSpec({cluster}).as_dict())",
        )  # fmt: skip

    def _spec(self) -> str:
        job, index = self._job(), self._index()
        return self._asked(
            self._made_spec(),
            "x.as_dict()", "sorted(x.jobs)", "bool(x)", f"x.num_tasks({job})", f"list(x.task_indices({job}))", f"x.task_address({job}, {index})", f"x.job_tasks({job})", f"x == ClusterSpec({self._cluster()})", f"x == {self._cluster()}",
            "x == ClusterSpec(x)", "x == x.as_dict()", "x != x.as_dict()", f"x == {self._odd()}", f"x != {self._odd()}", "ClusterSpec(x).as_dict()", f"x.task_address(job_name={job}, task_index={index})",
            "[x.num_tasks(job) for job in sorted(x.jobs)]", "[list(x.task_indices(job)) for job in sorted(x.jobs)]", "[x.job_tasks(job) for job in sorted(x.jobs) if x.num_tasks(job)]",
        )  # fmt: skip

    # -- resolvers --------------------------------------------------------------------------------------------------

    def _questions(self) -> tuple[str, ...]:
        job, index, layer = (
            self._job(),
            self._index(),
            self._rarely(self._odd(), self._either("None", "''", "'grpc'", "'http'")),
        )
        return (
            "x.cluster_spec()", "x.cluster_spec()", "x.task_type", "x.task_id", "x.rpc_layer", "x.environment", "x.master()", f"x.master({job}, {index})", f"x.master({job}, {index}, {layer})", f"x.master(task_type={job})",
            f"x.master(task_id={index})", f"x.master(rpc_layer={layer})", f"set_to(x, 'task_type', {job})", f"set_to(x, 'task_id', {index})", f"set_to(x, 'rpc_layer', {layer})",
        )  # fmt: skip

    def _kwargs(self, *names: str) -> str:
        values = {
            "task_type": self._job(), "task_id": self._index(), "rpc_layer": self._rarely(self._odd(), self._either("None", "''", "'grpc'")), "environment": self._rarely(self._odd(), self._either("''", "'cloud'", "None")),
            "master": self._rarely(self._odd(), self._either("''", "'m:1'", "'grpc://m:1'")),
        }  # fmt: skip
        return ", ".join(
            f"{name}={values[name]}" for name in self._random.sample(names, self._number(0, len(names)))
        )

    def _made_simple(self) -> str:
        names = ("task_type", "task_id", "rpc_layer", "environment", "master")
        more = ", ".join(
            part
            for part in (self._kwargs(*names), f"num_accelerators={self._either('{}', '{}', repr({'GPU': 2}), self._rarely(self._odd(), '{}'))}")
            if part
        )  # fmt: skip
        return f"resolvers.SimpleClusterResolver({self._rarely(self._odd(), self._made_spec())}, {more})"

    def _simple(self) -> str:
        return self._asked(self._made_simple(), *self._questions(), "dict(x.num_accelerators())", f"dict(x.num_accelerators({self._job()}, {self._index()}))")  # fmt: skip

    def _union(self) -> str:
        some = [self._made_simple() for _ in range(self._number(1, 3))]
        if self._random.random() < 0.15:
            some[-1] = self._odd()
        more = self._kwargs("task_type", "task_id", "rpc_layer")
        if self._random.random() < 0.05:
            some, more = [], more
        parts = ", ".join(part for part in (*some, more) if part)
        return self._asked(f"resolvers.UnionResolver({parts})", *self._questions())

    def _json(self, depth: int = 0) -> Any:
        odd: tuple[Any, ...] = (None, 0, 1, -1, 1.5, True, "", "a", "worker", [], ["a:1"], {}, {"a": 1}, [[]], [None], "a:1", "1", {"0": "a:1"}, {"1": "a:1", "0": "b:1"}, {"x": "a:1"}, {"01": "a:1"}, {" 1": "a:1"}, {"1.0": "a:1"}, {"-1": "a:1"})  # fmt: skip
        return self._random.choice(odd)

    def _tf_config(self) -> str:
        def rarely(usual: Any) -> Any:
            return self._json() if self._random.random() < 0.12 else usual

        jobs = self._random.sample(_JOBS[:5], self._number(0, 3))
        cluster = rarely({job: rarely([rarely(self._either(*_ADDRESSES)) for _ in range(self._number(0, 3))]) for job in jobs})  # fmt: skip
        task = rarely({"type": rarely(self._either(*_JOBS[:5])), "index": rarely(self._random.choice((0, 0, 1, "1", 5)))})  # fmt: skip
        config: Any = {"cluster": cluster, "task": task}
        for name, value in (
            ("rpc_layer", "grpc"),
            ("session_master", "s:1"),
            ("environment", "cloud"),
            ("job", {}),
        ):
            if self._random.random() < 0.15:
                config[name] = rarely(value)
        for name in ("cluster", "task"):
            if self._random.random() < 0.1:
                del config[name]
        if isinstance(config.get("task"), dict):
            for name in ("type", "index"):
                if self._random.random() < 0.1:
                    config["task"].pop(name, None)
        config = rarely(config)
        text = json.dumps(config)
        if self._random.random() < 0.06:
            text = self._either(text[:-1], "", " ", "{", "nonsense", text.replace('"', "'"), "﻿" + text, text + "x", "NaN", '{"cluster": {"worker": ["a:1"]}, "cluster": {"ps": ["b:1"]}}')  # fmt: skip
        environment = {"TF_CONFIG": text} if self._random.random() < 0.97 else {}
        kwargs = self._kwargs("task_type", "task_id", "rpc_layer", "environment")
        return f"in_environment({environment!r}, lambda: {self._asked(f'resolvers.TFConfigClusterResolver({kwargs})', *self._questions())})"

    def _slurm(self) -> str:
        hosts, tasks, count = self._random.choice((
            ("n[1-2]", "2(x2)", 4), ("a,b", "1(x2)", 2), ("n[1-2],m", "2,1(x2)", 4), ("n1", "3", 3), ("n[01-03]", "1(x3)", 3), ("n[1,3-4]x", "1(x3)", 3), ("a[1-2],b[3]", "1,2,1", 4), ("n[9-10]", "1(x2)", 2),
            ("n[1-2],n[1-2]", "1(x4)", 4), ("n[1-2", "1(x2)", 2), ("n[2-1]", "1", 1), ("", "1", 1), (",", "1", 1), ("n[1-2][3-4]", "1(x4)", 4), ("n1", "", 0), ("n1,n2", "1", 2), ("n1", "1(x2)", 2), ("n1", "0", 0),
            ("a-b[1-2]", "1(x2)", 2), ("a.b.c,d.e", "1(x2)", 2), ("n1", "x", 1), ("n1", "1(x)", 1), ("n1", "-1", 1), ("n1", "1.5", 1), ("n[1-2],", "1(x2)", 2), ("n[1-]", "1", 1), ("n[a-b]", "1", 1), ("n[]", "1", 1), ("n1 n2", "2", 2),
        ))  # fmt: skip
        gpus = self._number(0, 8)
        variables = {
            "SLURM_PROCID": self._rarely(self._either("9", "-1", "a", "", "1.0"), self._number(0, max(count - 1, 0))),
            "SLURM_STEP_NUM_TASKS": self._rarely(self._either("0", "9", "a", "", "1.0"), count),
            "SLURM_STEP_NODELIST": hosts,
            "SLURM_STEP_TASKS_PER_NODE": tasks,
            "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus))),
        }  # fmt: skip
        if self._random.random() < 0.05:
            del variables[self._random.choice(list(variables)[:4])]
        jobs = self._either("None", "None", f"{{'worker': {count}}}", f"{{'worker': {count - 1}, 'ps': 1}}", f"{{'ps': {count - 1}, 'chief': 1}}", self._odd(), f"{{'worker': {self._odd()}}}", f"{{{self._odd()}: {count}}}", "{}")  # fmt: skip
        values = {
            "jobs": jobs, "port_base": self._rarely(self._odd(), self._either("8888", "1", "'8888'", "65535", "70000")), "gpus_per_node": self._rarely(self._odd(), self._either("None", str(gpus), "4", "8")),
            "gpus_per_task": self._rarely(self._odd(), self._either("None", "0", "1", "2")), "tasks_per_node": self._rarely(self._odd(), self._either("None", "None", "1", "2")), "auto_set_gpu": self._either("True", "False", "False"),
            "rpc_layer": self._rarely(self._odd(), self._either("'grpc'", "''", "None")),
        }  # fmt: skip
        some = self._random.sample(sorted(values), self._number(0, 4))
        kwargs = ", ".join(f"{name}={values[name]}" for name in some)
        questions = (*self._questions(), "x.get_task_info()", "visible()", "dict(x.num_accelerators())")
        return f"in_environment({variables!r}, lambda: {self._asked(f'resolvers.SlurmClusterResolver({kwargs})', *questions)})"

    # -- devices ----------------------------------------------------------------------------------------------------

    def _device_text(self) -> str:
        parts = (
            "/job:worker", "/job:ps", "/job:", "/job:a-b", "/job:1", "/job:_x", "/job:wor ker", "/job", "/replica:0", "/replica:", "/replica:*", "/replica:1.5", "/replica:+1", "/replica: 1", "/task:1", "/task:a", "/task:-1", "/task:*", "/task:01", "/task:1_0",
            "/CPU:0", "/cpu:1", "/GPU", "/gpu:*", "CPU:0", "CPU", "gpu:1", "//", "/", "", " ", "/device:GPU:*", "/device:TPU:0", "/device:CPU", "/device:custom:3", "/device:CPU:", "/device::0", "/device:", "/device:GPU:a", "/device:GPU:-1", "/device:GPU:0:1", "/device:gpu:0",
            "/device:XLA_CPU:0", "/gizmo:0", "/tpu:0", "/TPU:*", "/EPU:0", "/custom:1", "/CUSTOM:0", "/Job:worker", "/DEVICE:CPU:0", "/device:Cpu:0", "/job:worker/", "@", ":", "0", "localhost",
        )  # fmt: skip
        text = "".join(self._either(*parts) for _ in range(self._number(1, 4)))
        if self._random.random() < 0.1:
            place = self._number(0, len(text))
            text = text[:place] + self._either(":", "/", "*", " ", "x", "1", "\\n", "é") + text[place:]
        return self._rarely(self._odd(), repr(text))

    def _fields(self) -> str:
        values = {
            "job": self._rarely(self._odd(), self._either("'worker'", "'ps'", "None", "''")),
            **{name: self._rarely(self._odd(), self._either("0", "1", "None", "'1'", "'a'", "-1")) for name in ("replica", "task", "device_index")},
            "device_type": self._rarely(self._odd(), self._either("'CPU'", "'gpu'", "'Gpu'", "'tpu'", "None", "'custom'", "''")),
        }  # fmt: skip
        some = self._random.sample(sorted(values), self._number(0, 5))
        unknown = ["name='x'"] if self._random.random() < 0.03 else []
        return ", ".join([f"{name}={values[name]}" for name in some] + unknown)

    def _device(self) -> str:
        text = self._device_text()
        made = self._either(f"DeviceSpec.from_string({text})", f"DeviceSpec.from_string({text})", f"DeviceSpec({self._fields()})", f"DeviceSpec.from_string(spec={text})", f"DeviceSpec({self._odd()}, {self._odd()})")  # fmt: skip
        other = self._either(f"DeviceSpec.from_string({self._device_text()})", f"DeviceSpec({self._fields()})", self._odd(), "x")  # fmt: skip
        return self._asked(
            made,
            "x.to_string()", "x.to_string()", "[x.job, x.replica, x.task, x.device_type, x.device_index]", f"x.replace({self._fields()})", f"x.replace({self._fields()}).to_string()", f"x.make_merged_spec({other}).to_string()", f"x.parse_from_string({self._device_text()}).to_string()",
            f"x == {other}", f"x != {other}", "x == x.to_string()", "hash(x) == hash(DeviceSpec.from_string(x.to_string()))", "DeviceSpec.from_string(x.to_string()) == x", f"set_to(x, 'job', {self._job()})", "x.make_merged_spec(x) == x", "x.replace() == x", "{x: 1}[x.replace()]",
            f"DeviceSpec.from_string({self._device_text()}).make_merged_spec(x).to_string()", "[x.make_merged_spec(DeviceSpec(device_type='GPU')).to_string(), DeviceSpec(device_type='GPU').make_merged_spec(x).to_string()]",
        )  # fmt: skip

    # -- partitioners -----------------------------------------------------------------------------------------------

    def _partitioner(self) -> str:
        number = self._rarely(self._odd(), self._either(0, 1, 2, 3, 7, 16, 100, -1, 256))
        limit = self._rarely(self._odd(), self._either("None", 0, 1, 2, 3, 10))
        text_bytes = self._rarely(self._odd(), self._either(1, 4, 16))
        made = self._either(
            f"partitioners.FixedShardsPartitioner({number})", f"partitioners.FixedShardsPartitioner(num_shards={number})", "partitioners.MinSizePartitioner()", f"partitioners.MinSizePartitioner({number})", f"partitioners.MinSizePartitioner({number}, {limit})", f"partitioners.MinSizePartitioner({number}, max_shards={limit}, bytes_per_string={text_bytes})",
            f"partitioners.MaxSizePartitioner({number})", f"partitioners.MaxSizePartitioner({number}, {limit})", f"partitioners.MaxSizePartitioner({number}, max_shards={limit}, bytes_per_string={text_bytes})", "partitioners.MinSizePartitioner(4, 8)",
        )  # fmt: skip
        sizes = [self._rarely(self._either(0, 0, "None", -1, 2**31, 2**40), self._number(1, 20)) for _ in range(self._number(0, 3))]  # fmt: skip
        shape = f"[{', '.join(sizes)}]"
        dtype = self._either(*("'float32'",) * 3, "'float64'", "'int8'", "'string'", "'bool'", "'complex64'", "'int64'", "'float16'")  # fmt: skip
        axis = self._either("", "", "", ", 0", ", 1", ", 2", ", -1", ", axis=1", ", axis=-2", f", {self._odd()}" if self._random.random() < 0.3 else "")  # fmt: skip
        shapes = [self._rarely(self._odd(), shape), f"({', '.join(sizes)},)" if sizes else "()", shape]
        return self._asked(made, *(f"divided(x, {each}, {dtype}{axis})" for each in shapes))
