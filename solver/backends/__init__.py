"""Solvers behind the program: each takes a PuLP problem and tells what it has proven, never by a status text."""
