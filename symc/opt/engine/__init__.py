"""Rules, patterns and passes: what they are, how a graph is rewritten, and in which order passes run."""
