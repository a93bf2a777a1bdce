"""Free functions on arrays: projections, one-dimensional searches, compiled inner loops.

Nothing here knows what a kernel, a loss or a problem is.  Modules that need numba are imported where they are used,
so that importing the library stays quick.
"""
