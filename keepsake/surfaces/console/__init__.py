"""The web console: server-rendered pages over the same operations as every other surface, with no rights of its own."""
