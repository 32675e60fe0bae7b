"""`wb.inspect`: facts about values, replica by replica."""
