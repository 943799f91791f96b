"""How is the demo started? `python -m mcpproxy.demo` serves the notes box on stdio."""

import asyncio
import signal

from mcpproxy.demo.server import serve


def main() -> None:
    """Serve until stdin ends or the process is told to stop."""
    # A thread sits in a blocking read of stdin, so a handler in Python could not end it;
    # and there is nothing to save.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(serve())


if __name__ == "__main__":
    main()
