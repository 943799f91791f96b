"""What does a fault of one upstream cost the calls to the others?"""
