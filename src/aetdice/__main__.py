"""`python -m aetdice` is the command line."""

from aetdice.cli import main

main()
