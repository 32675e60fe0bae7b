"""`wb.field_terms`: whether views use the field's terms or plain words."""

from __future__ import annotations

from workbench.errors import FailedPreconditionError


def field_terms(shown: bool = True) -> None:
    """Makes views use the field's terms, such as "busbw" and "r1@a", instead of "bandwidth" and "replica 1 on a".

    It is for notebooks in VS Code, Colab and other places without JupyterLab's setting "The field's terms". All views
    of the page change as soon as one of this kernel is drawn; if the page already shows one, immediately, even while
    the cell runs. If the setting exists, the call is effective until the setting is changed, and again after the page
    is reloaded, as long as the kernel runs. Dashboards and reports have a switch with this name.

    Args:
      shown: Whether to use the field's terms; False restores the plain words.

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
