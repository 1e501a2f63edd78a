"""Speed and quality, measured beside the peers; timings live here and never in a test's assertion."""
