"""A consumer on daphne that only sends."""
