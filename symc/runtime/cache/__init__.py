"""Machine code and recordings on disk: private, by content, checked before use."""
