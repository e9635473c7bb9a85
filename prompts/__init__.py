"""Questions to the user that survive everything and are answered once."""
