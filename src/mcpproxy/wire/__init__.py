"""How do bytes move?"""
