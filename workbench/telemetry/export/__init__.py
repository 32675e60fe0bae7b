"""Records in other tools' formats, and as text."""
