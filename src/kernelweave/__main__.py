"""``python -m kernelweave``: the command line where no script is on the path."""

from .cli import main

main()
