"""Where requests come in: MCP, REST, the command line."""
