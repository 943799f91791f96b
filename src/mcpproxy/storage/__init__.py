"""Where does it stay?"""
