"""`distribute`, `register_dataset` and `from_dataset_id`, as in tf.data.experimental.service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.arguments import count
from workbench.communicators.core.tcp import is_loopback
from workbench.data.dataset import Dataset
from workbench.data.options import AUTOTUNE
from workbench.data.service.address import Address, Tls
from workbench.data.service.channel import Channel
from workbench.data.service.consumer.reading import Reading
from workbench.data.service.consumer.source import ServiceSource
from workbench.data.service.cross_trainer_cache import CrossTrainerCache
from workbench.data.service.policy import CACHE_NEEDS_NO_END, NEEDS_NO_END, ShardingPolicy
from workbench.data.service.splits import split_counts
from workbench.data.service.wire import Fields
from workbench.data.spec import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, required_spec
from workbench.data.stored.blocks import check_stored_compression
from workbench.data.stored.fingerprint import fingerprints
from workbench.data.stored.layout import spec_json, spec_of_json
from workbench.errors import CaptureError, FailedPreconditionError, InvalidArgumentError
from workbench.runtime.comm.messages import dumps

TIMEOUT_SECONDS = 60.0
"""How long to wait for a service that is unreachable or has no worker."""
_SERVICE = "the data service"


def distribute(
    processing_mode: str | ShardingPolicy,
    service: str,
    job_name: str | None = None,
    *,
    consumer_index: int | None = None,
    num_consumers: int | None = None,
    max_outstanding_requests: int | None = None,
    data_transfer_protocol: str | None = None,
    compression: str | None = "AUTO",
    cross_trainer_cache: CrossTrainerCache | None = None,
    target_workers: str = "AUTO",
    tls: Tls | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Callable[[Dataset], Dataset]:
    """For `Dataset.apply`: data workers compute the stages before it, and the reader those after it.

    Args:
      processing_mode: "parallel_epochs" (each worker computes everything), "distributed_epoch" (each element arrives
        exactly once, even if workers or the dispatcher are killed) or a `ShardingPolicy`.
      service: Address of the dispatcher, `dispatcher.target`.
      job_name: Readers with the same name share the elements, first come, first served. The nth iteration of one reader
        shares elements with the nth of the others; one that starts after its end gets nothing.
      consumer_index: For coordinated reads, the number of this consumer, from 0. Consumers read in rounds: in each
        round, all get an element of the same worker. If every `num_consumers` consecutive elements belong together,
        such as batches of one length, each training step gets elements that belong together. The dataset must be
        infinite. A slow consumer keeps the others from running far ahead, and one that was killed and restarted
        continues in its round. Workers that join after the first round replace lost ones.
      num_consumers: How many consumers read in rounds; requires `consumer_index` and `job_name`.
      max_outstanding_requests: How many elements may be in transit or wait for the loop; by default, and with
        `AUTOTUNE`, about two megabytes per worker, or in rounds two elements per worker.
      data_transfer_protocol: None or "grpc".
      compression: Compression of elements in transit: "AUTO" (none on this machine, SNAPPY to others), "SNAPPY", "GZIP"
        or None.
      cross_trainer_cache: Shares the workers' elements with other trainers; requires `job_name` and an infinite
        dataset.
      target_workers: "AUTO" or "ANY" read from all workers, "LOCAL" only from those in the reader's process. All
        readers of a job must agree; only workers in their processes compute a job of local readers.
      tls: The authority that verifies servers, if they use TLS.
      timeout_seconds: How long to wait for a service that is unreachable or has no worker, and, in rounds, for other
        consumers.

    Raises:
      InvalidArgumentError: for an unknown mode, a malformed address, or inconsistent arguments; when applied, for a
        source that the mode must divide but cannot, or a cache for a finite dataset.
      FailedPreconditionError: when applied, for a finite dataset that is to be read in rounds.
      UnavailableError: when applied, if the dispatcher does not answer.
    """
    reading = _reading(
        processing_mode, service, job_name, _Rounds(consumer_index, num_consumers), max_outstanding_requests,
        data_transfer_protocol, cross_trainer_cache, target_workers, tls, timeout_seconds,
    )  # fmt: skip

    def apply(dataset: Dataset) -> Dataset:
        fields = _described(dataset, compression, reading.address)
        if reading.mode == ShardingPolicy.DYNAMIC.value and fields["splits"] is None:
            raise InvalidArgumentError(fields["unsplittable"])
        if reading.num_consumers and fields["finite"]:
            raise FailedPreconditionError(NEEDS_NO_END)
        if reading.trainer and fields["finite"]:
            raise InvalidArgumentError(CACHE_NEEDS_NO_END)
        dataset_id = _registered(dataset, fields, None, reading)
        spec, known = required_spec(dataset, _SERVICE), _known_cardinality(dataset, reading)
        return _dataset_of(reading, dataset_id, spec, known)

    return apply


def _known_cardinality(dataset: Dataset, reading: Reading) -> int:
    """How many elements workers make from a dataset, if that depends only on the dataset."""
    cardinality = dataset.cardinality()
    if cardinality == 0:
        return 0
    # Parts of files may be empty although all of them are endless.
    mode = ShardingPolicy(reading.mode)
    whole = mode in (ShardingPolicy.OFF, ShardingPolicy.DYNAMIC, ShardingPolicy.DATA)
    return INFINITE_CARDINALITY if whole and cardinality == INFINITE_CARDINALITY else UNKNOWN_CARDINALITY


def register_dataset(
    service: str,
    dataset: Dataset,
    compression: str | None = "AUTO",
    dataset_id: str | None = None,
    *,
    tls: Tls | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Any:
    """Registers a dataset for `from_dataset_id`, also in other processes. Equal datasets have the same id.

    Args:
      service: Address of the dispatcher.
      dataset: The dataset.
      compression: See `distribute`.
      dataset_id: A name to register it under.
      tls: The authority that verifies servers, if they use TLS.
      timeout_seconds: How long to retry an unreachable dispatcher.

    Returns:
      The id: `dataset_id`, or an int64.

    Raises:
      InvalidArgumentError: for a malformed address, or if another dataset has this id.
      CaptureError: if the dataset cannot be sent.
      UnavailableError: if the dispatcher does not answer.
    """
    address = Address.of_target(service)
    reading = Reading(address, tls, 0, 0, "", 0, timeout_seconds)
    found = _registered(dataset, _described(dataset, compression, address), dataset_id, reading)
    return np.int64(found) if isinstance(found, int) else found


def from_dataset_id(
    processing_mode: str | ShardingPolicy,
    service: str,
    dataset_id: Any,
    element_spec: Any = None,
    job_name: str | None = None,
    *,
    consumer_index: int | None = None,
    num_consumers: int | None = None,
    max_outstanding_requests: int | None = None,
    data_transfer_protocol: str | None = None,
    cross_trainer_cache: CrossTrainerCache | None = None,
    target_workers: str = "AUTO",
    tls: Tls | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Dataset:
    """A dataset with the elements of a registered one.

    Args:
      processing_mode: See `distribute`.
      service: Address of the dispatcher.
      dataset_id: The result of `register_dataset`.
      element_spec: `dataset.element_spec` of the registered dataset; by default, it is requested from the dispatcher,
        and named tuples have a new class.
      job_name: See `distribute`.
      consumer_index: See `distribute`.
      num_consumers: See `distribute`.
      max_outstanding_requests: See `distribute`.
      data_transfer_protocol: See `distribute`.
      cross_trainer_cache: See `distribute`.
      target_workers: See `distribute`.
      tls: See `distribute`.
      timeout_seconds: See `distribute`.

    Raises:
      InvalidArgumentError: for an unknown mode or a malformed address; or if the dispatcher does not know the
        `element_spec`, because an earlier version registered the dataset.
      NotFoundError: if the dispatcher is asked and knows no such dataset.
      UnavailableError: if it is asked and does not answer.
    """
    reading = _reading(
        processing_mode, service, job_name, _Rounds(consumer_index, num_consumers), max_outstanding_requests,
        data_transfer_protocol, cross_trainer_cache, target_workers, tls, timeout_seconds,
    )  # fmt: skip
    found = dataset_id if isinstance(dataset_id, str) else int(dataset_id)
    return _dataset_of(reading, found, _known_spec(reading, found) if element_spec is None else element_spec)


def _known_spec(reading: Reading, dataset_id: int | str) -> Any:
    """The nested spec of a registered dataset, from the dispatcher."""
    channel = Channel(reading.address, reading.tls, "dispatcher", reading.timeout_seconds)
    try:
        reply, _ = channel.call("spec", {"dataset": dataset_id})
    finally:
        channel.close()
    if reply["spec"] is None:
        raise InvalidArgumentError(
            "from_dataset_id needs the element_spec of this dataset, which an earlier version registered: "
            "element_spec=dataset.element_spec"
        )
    return spec_of_json(reply["spec"])


@dataclass(frozen=True, slots=True)
class _Rounds:
    """What a consumer that reads in rounds reports about itself."""

    index: int | None
    count: int | None

    def checked(self, job_name: str | None) -> tuple[int, int]:
        """Index and number of consumers; -1 and 0 without rounds.

        Raises:
          InvalidArgumentError: if they are inconsistent.
        """
        if self.index is None and self.count is None:
            return -1, 0
        if self.index is None or self.count is None:
            raise InvalidArgumentError(
                f"consumer_index is {self.index!r} and num_consumers {self.count!r}; coordinated reads need both"
            )
        index, consumers = count(self.index, "consumer_index", 0), count(self.count, "num_consumers")
        if index >= consumers:
            raise InvalidArgumentError(
                f"consumer_index is {index} of {consumers} consumers; it must be from 0 to num_consumers - 1"
            )
        if job_name is None:
            raise InvalidArgumentError(
                "consumers that read in rounds share a job, so they need its name: job_name=..."
            )
        return index, consumers


def _reading(
    processing_mode: str | ShardingPolicy,
    service: str,
    job_name: str | None,
    rounds: _Rounds,
    max_outstanding_requests: int | None,
    data_transfer_protocol: str | None,
    cross_trainer_cache: CrossTrainerCache | None,
    target_workers: str,
    tls: Tls | None,
    timeout_seconds: float,
) -> Reading:
    policy = ShardingPolicy.of(processing_mode)
    address = Address.of_target(service)
    if job_name is not None and not (isinstance(job_name, str) and job_name):
        raise InvalidArgumentError(f"job_name is {job_name!r}; it must be a text that is not empty, or None")
    most = max_outstanding_requests
    if most == AUTOTUNE:
        most = None
    if most is not None:
        most = count(most, "max_outstanding_requests", otherwise=", or None")
    if data_transfer_protocol not in (None, "grpc"):
        raise InvalidArgumentError(
            f"data_transfer_protocol is {data_transfer_protocol!r}; there is 'grpc' only"
        )
    target = str(target_workers).upper()
    if target not in ("AUTO", "ANY", "LOCAL"):
        raise InvalidArgumentError(
            f"target_workers is {target_workers!r}; it must be 'AUTO', 'ANY' or 'LOCAL'"
        )
    index, consumers = rounds.checked(job_name)
    if consumers and target == "LOCAL":
        raise InvalidArgumentError(
            "consumers that read in rounds all read from the same workers, so target_workers cannot be 'LOCAL'"
        )
    trainer = _trainer(cross_trainer_cache, job_name)
    if consumers and trainer:
        raise InvalidArgumentError(
            "cross_trainer_cache and consumer_index exclude each other: trainers read at their own pace, rounds do not"
        )
    return Reading(
        address, tls, 0, policy.value, job_name or "", most or 0, float(timeout_seconds), index, consumers,
        trainer, target,
    )  # fmt: skip


def _trainer(cache: CrossTrainerCache | None, job_name: str | None) -> str:
    if cache is None:
        return ""
    if not isinstance(cache, CrossTrainerCache):
        raise InvalidArgumentError(
            f"cross_trainer_cache is a {type(cache).__name__}; it must be a CrossTrainerCache(trainer_id), or None"
        )
    if job_name is None:
        raise InvalidArgumentError(
            "trainers share the cache of a job, so they need its name: distribute(..., job_name=...)"
        )
    return cache.trainer_id


def _described(dataset: Dataset, compression: str | None, address: Address) -> Fields:
    """The dispatcher's description of a dataset."""
    if not isinstance(dataset, Dataset):
        raise TypeError(f"the data service takes a Dataset, got {type(dataset).__name__}")
    spec = spec_json(
        required_spec(dataset, _SERVICE)
    )  # rejects here what cannot be sent, such as nested datasets
    if compression == "AUTO" and is_loopback(address.host):
        compression = None
    codec = check_stored_compression(compression)
    try:
        splits, why = split_counts(dataset), ""
    except InvalidArgumentError as error:
        splits, why = None, str(error)
    exact, alike = fingerprints(dataset.source, dataset.stages)
    return {
        "fingerprint": f"{exact}-{codec}",
        "kind": f"{alike}-{codec}",
        "splits": splits,
        "unsplittable": why,
        "endless": dataset.cardinality() == INFINITE_CARDINALITY,
        "finite": dataset.cardinality() >= 0,
        "compression": codec,
        "spec": spec,
    }


def _registered(dataset: Dataset, fields: Fields, wanted: str | None, reading: Reading) -> int | str:
    try:
        data = dumps(dataset)
    except Exception as error:
        raise CaptureError(
            f"the dataset cannot be sent to data workers: {type(error).__name__}: {error}; its functions must not "
            "refer to locks, open files or connections"
        ) from error
    channel = Channel(reading.address, reading.tls, "dispatcher", reading.timeout_seconds)
    try:
        reply, _ = channel.call("register", {"dataset": fields, "id": wanted}, data)
    finally:
        channel.close()
    found: int | str = reply["id"]
    return found


def _dataset_of(
    reading: Reading, dataset_id: int | str, element_spec: Any, known: int = UNKNOWN_CARDINALITY
) -> Dataset:
    return Dataset.of_source(ServiceSource(replace(reading, dataset=dataset_id), element_spec, known=known))
