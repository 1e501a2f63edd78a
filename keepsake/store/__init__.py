"""SQL; nothing above this folder knows which database runs."""
