"""What grows with the number of tools, of upstreams and of records, and how?"""
