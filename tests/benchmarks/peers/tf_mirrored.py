"""TensorFlow's MirroredStrategy on N logical CPUs of one process."""

from __future__ import annotations

import os
from typing import Any


def mirrored(replicas: int, cross_device_ops: str = "") -> tuple[Any, Any]:
    """(tensorflow, a MirroredStrategy), with the named tf.distribute cross-device ops or the default ones."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    ops = getattr(tf.distribute, cross_device_ops)() if cross_device_ops else None
    devices = [f"CPU:{i}" for i in range(replicas)]
    return tf, tf.distribute.MirroredStrategy(devices, cross_device_ops=ops)
