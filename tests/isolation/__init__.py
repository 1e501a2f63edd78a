"""Nothing of one org or bank for another, and nothing beyond a right: every operation at every door."""
