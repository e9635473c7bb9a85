"""Servers that Cardwire is compared with."""
