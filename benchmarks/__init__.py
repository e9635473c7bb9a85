"""How fast Cardwire is, measured against what it stands on."""
