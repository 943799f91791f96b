"""The dashboard: is everything connected, what are my agents doing, what needs my decision?"""
