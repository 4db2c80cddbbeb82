"""`python -m aetdice` is the command line."""

from aetdice_command import main

main()
