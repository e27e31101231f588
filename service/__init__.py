"""How plans are asked for."""
