"""May this call be made? Pure functions: values in, a verdict out. No I/O, and nothing of the MCP library."""
