"""Is this server alive?"""
