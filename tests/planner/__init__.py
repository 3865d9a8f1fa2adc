"""Rules, estimates and plans, mostly without running anything."""
