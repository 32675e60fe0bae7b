"""Links between driver and workers, and the messages that go over them."""
