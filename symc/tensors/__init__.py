"""Objects that a user holds: symbolic values, sizes, inputs, states, and the nests they come in."""
