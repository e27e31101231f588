"""Profiles and clusters that are stored once, and named by many problems."""
