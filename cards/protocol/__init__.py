"""The pure core of the card protocol: no I/O, no clock, no framework."""
