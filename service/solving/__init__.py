"""How a problem is solved in a process of its own, within limits."""
