"""What is written about the command line: made from the commands themselves."""
