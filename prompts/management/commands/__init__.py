"""One module a command, named as it is called."""
