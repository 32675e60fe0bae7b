"""`python -m workbench` is the same as the command `workbench`."""

from workbench.cli import main

if __name__ == "__main__":  # worker processes import this file again, under another name
    raise SystemExit(main())
