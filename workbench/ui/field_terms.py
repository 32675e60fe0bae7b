"""`wb.field_terms`: whether views say the field's terms or plain words."""

from __future__ import annotations

from workbench.errors import FailedPreconditionError


def field_terms(shown: bool = True) -> None:
    """Lets views say the field's terms, such as "busbw" and "r1@a", instead of "bandwidth" and "replica 1 on a".

    It is for notebooks in VS Code, Colab and wherever else JupyterLab's setting "The field's terms" does not exist. All
    views of the page change as soon as one of this kernel is drawn: immediately, even while the cell runs, where the
    page shows one already. Where the setting exists, the call counts until the setting is changed, and again after the
    page was loaded anew, as long as the kernel runs. Dashboards and reports have a switch of that name.

    Args:
      shown: Whether to say the field's terms; False brings back the plain words.

    Raises:
      FailedPreconditionError: if this process is not the kernel of a notebook.
      TypeError: if `shown` is neither True nor False.
    """
    from workbench.ui.widgets.built import is_built
    from workbench.ui.widgets.bundle import in_a_kernel

    if not isinstance(shown, bool):
        raise TypeError(f"wb.field_terms takes True or False, got {shown!r}")
    if not in_a_kernel():
        raise FailedPreconditionError(
            "views in the cells of a notebook say the field's terms or plain words: call wb.field_terms in a notebook"
        )
    if is_built():
        from workbench.ui.widgets.widget import view_code

        view_code().field_terms = shown
