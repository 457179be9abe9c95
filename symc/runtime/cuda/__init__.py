"""Running plans on a CUDA device, real or emulated."""
