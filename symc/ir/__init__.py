"""The value IR: what a computation is and means. No algorithm here decides anything."""
