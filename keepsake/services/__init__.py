"""Services: what Keepsake computes with besides its store."""
