"""The command line: a file per group of commands; everything goes through dispatch."""
