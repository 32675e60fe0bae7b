"""Where elements come from, one kind per file. Each is a frozen description that can be opened."""
