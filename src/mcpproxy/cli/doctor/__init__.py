"""Is everything as it should be?"""
