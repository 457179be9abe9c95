"""The explorer: one HTML page of everything a compiled function went through, which links it all up.

``model`` is the data of the page, ``page`` puts it and the scripts into one file, ``server`` shows that on a port.
"""
