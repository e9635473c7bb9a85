"""The rules of files: their names, what markup is, ranges, what a browser is told."""
