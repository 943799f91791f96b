"""`python -m mcpproxy`: the same as the command."""

from mcpproxy.cli.main import main

if __name__ == "__main__":
    main()
