"""Connecting coding clients: what is written where, and how it is taken out again."""
