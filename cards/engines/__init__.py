"""The engines that ship with Cardwire, one package each."""
