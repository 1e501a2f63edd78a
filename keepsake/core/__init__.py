"""Words everyone shares: no input or output, no third party but pydantic."""
