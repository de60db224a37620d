"""Start the MCP server of memoriter with the options that Claude Desktop passes."""

import sys

from memoriter.cli import main

if __name__ == "__main__":
    sys.argv = ["memoriter", *sys.argv[1:], "mcp"]
    main()
