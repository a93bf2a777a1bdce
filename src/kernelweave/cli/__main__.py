"""``python -m kernelweave.cli``."""

from . import main

main()
