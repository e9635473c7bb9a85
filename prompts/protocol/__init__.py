"""The rules of prompts: which answers fit, what they cover, what goes on with them."""
