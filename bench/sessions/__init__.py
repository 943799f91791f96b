"""What do clients cost that open a session and never come back?"""
