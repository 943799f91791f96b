"""Does anything grow while it works for a long time?"""
