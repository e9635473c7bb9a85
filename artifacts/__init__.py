"""Files that assistants make and users bring."""
