"""Colours and lines that survive a black-and-white printer, for every picture of the library."""

from __future__ import annotations

__all__ = ["ACCENT", "FAINT", "INK", "LINES"]

#: dark, middle and light, apart in grey as well as in colour
INK = "#1b3a57"
ACCENT = "#c8641e"
FAINT = "#d9dee3"
#: line styles for curves that colour alone would not tell apart
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
