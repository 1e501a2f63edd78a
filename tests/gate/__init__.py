"""Propose and apply, the checkstack dialect, and the signed heads of the audit log."""
