"""The rules, one file a family; README.md says how to write one. ``listed`` knows them all."""
