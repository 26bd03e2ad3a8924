"""Commands that go on without the terminal they were given in."""
