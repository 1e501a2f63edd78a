"""OAuth over HTTP: discovery, registration, sign-in and consent pages, tokens."""
