"""What can a newcomer try in five minutes? A notes box in memory, served as a real MCP server on stdio."""
