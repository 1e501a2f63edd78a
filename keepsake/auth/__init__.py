"""A credential becomes a Principal; policy; knows no HTTP."""
