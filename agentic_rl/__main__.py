"""`python -m agentic_rl` is `agentic-rl`."""

from agentic_rl.cli import main

main()
