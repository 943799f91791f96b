"""What did the operator say?"""
