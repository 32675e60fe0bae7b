"""Where a user is: lines of scripts, cells of notebooks."""
