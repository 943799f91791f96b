"""Who is this?"""
