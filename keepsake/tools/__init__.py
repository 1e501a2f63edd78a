"""Dialects: tables of tools and the wire models they need."""
