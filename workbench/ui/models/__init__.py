"""What views draw, as data: the definition of every message to them."""
