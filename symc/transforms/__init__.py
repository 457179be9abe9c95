"""From values to values: derivatives, vmap, loops and branches, checkpoints, ops of users."""
