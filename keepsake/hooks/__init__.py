"""Capture: what coding clients tell, in their own shapes; quick to load, because an editor waits."""
