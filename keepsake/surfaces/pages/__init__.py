"""Pages for people: how they are rendered, what forms on them carry, and signing in; OAuth and the console use them."""
