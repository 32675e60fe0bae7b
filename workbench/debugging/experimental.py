"""`wb.debugging.experimental`: dumps, with the names of the reference."""

from workbench.debugging.dump.session import (
    DebugEventsWriter,
    disable_dump_debug_info,
    enable_dump_debug_info,
)

__all__ = ["DebugEventsWriter", "disable_dump_debug_info", "enable_dump_debug_info"]
