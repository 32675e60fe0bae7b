"""Warnings that name the modern spelling of an old one, once per process."""

from __future__ import annotations

from workbench.backends.users_line import warn

_told: set[str] = set()


def tell(old: str, modern: str) -> None:
    """Warns the caller of a public function that its spelling is old; the first time only.

    Args:
      old: The spelling of TensorFlow 1, such as "call_for_each_tower(fn, *args)".
      modern: What to write today.
    """
    if old not in _told:
        _told.add(old)
        warn(f"{old} is a spelling of TensorFlow 1; write {modern}", DeprecationWarning)


def forget() -> None:
    """Makes each old spelling warn again."""
    _told.clear()
