"""The use cases, a file per noun."""
