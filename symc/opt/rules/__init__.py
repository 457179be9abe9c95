"""The rules, one file a family; README.md says how to write one. ``symc.opt.listed`` knows which files there are."""
