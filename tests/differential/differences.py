"""What counts as a difference between the two outcomes of a program."""

from __future__ import annotations

from typing import Any

from tests.differential.evaluate import MOST_ERRORS


def difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """In which respect two outcomes differ; "" if in none.

    What TensorFlow refuses while the pipeline is made may be refused with the elements here, as functions are not
    traced, or be accepted. Specs and cardinalities may tell more here.
    """
    if "made" in theirs:
        return ""
    if "made" in ours:
        return "made"
    if "value" in theirs or "value" in ours:
        return "" if theirs.get("value") == ours.get("value") else "value"
    if not _same_elements(theirs["elements"], ours["elements"]):
        return "elements"
    if not _is_error(ours["spec"]) and not _fits(theirs["spec"], ours["spec"]):
        return "spec"
    counts = theirs["cardinality"], ours["cardinality"]
    return "cardinality" if counts[0] >= -1 and counts[0] != counts[1] else ""


def accepted(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Whether TensorFlow refuses while a program is made what here gives a value, or elements without an error."""
    return "made" in theirs and (
        "value" in ours or ("elements" in ours and not any(map(_is_error, ours["elements"])))
    )


def _same_elements(theirs: list[Any], ours: list[Any]) -> bool:
    endless = _endless_error(theirs)
    if endless is not None:
        theirs, ours = theirs[: endless + 1], ours[: endless + 1]
    return len(theirs) == len(ours) and all(
        _same_error(one, other) if _is_error(one) and _is_error(other) else one == other
        for one, other in zip(theirs, ours, strict=True)
    )


def _endless_error(elements: list[Any]) -> int | None:
    """The position of an error that TensorFlow repeats endlessly, such as that of a file; here it comes once."""
    for index, each in enumerate(elements):
        if (
            _is_error(each) and "expected to contain" in each["text"]
        ):  # of the cardinality, with another number each time
            return index
    last = elements[-1] if elements else None
    if not _is_error(last) or sum(map(_is_error, elements)) < MOST_ERRORS:
        return None
    first = len(elements)
    while first and elements[first - 1] == last:
        first -= 1
    return first if len(elements) - first > 1 else None


def _same_error(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    """TypeError and ValueError stand for each other, because NumPy and TensorFlow disagree on which of the two fits."""
    alike = {"TypeError", "ValueError", "InvalidArgumentError"}
    if theirs["error"][0] in (
        "InternalError",
        "UnimplementedError",
        "UnknownError",
    ):  # from its own code, whatever is wrong
        return True
    return theirs["error"][0] in ours["error"] or bool(
        alike & set(theirs["error"]) and alike & set(ours["error"])
    )


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and "error" in value


def _fits(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(map(_fits, theirs, ours))
    if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
        if "dtype" not in theirs:
            return all(_fits(theirs[name], ours[name]) for name in theirs)
        shapes = theirs["shape"], ours["shape"]
        known = shapes[0] is not None and shapes[1] is not None
        return theirs["dtype"] == ours["dtype"] and (not known or len(shapes[0]) == len(shapes[1]))
    return bool(theirs == ours)
