"""Live sessions: who follows them and what runs in them."""
