"""Servers, from a terminal."""
