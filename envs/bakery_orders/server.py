"""Serves this environment to any MCP client over stdio: `python server.py [episode seed]`."""

import sys
from pathlib import Path

from toolverse_jax.environment.mcp_server import serve_stdio

if __name__ == "__main__":
    serve_stdio(Path(__file__).parent, seed=int(sys.argv[1]) if len(sys.argv) > 1 else 0)
