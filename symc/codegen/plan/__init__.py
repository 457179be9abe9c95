"""Planning: the order of steps, what is written over what, where buffers lie, and the proof of it."""
