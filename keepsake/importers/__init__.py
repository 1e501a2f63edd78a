"""Readers of what other tools keep: each gives records or events, one at a time, and writes nothing anywhere."""
