"""The `remask` command. Imports every part; nothing imports it."""
