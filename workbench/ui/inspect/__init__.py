"""`wb.inspect`: what values are, replica by replica."""
