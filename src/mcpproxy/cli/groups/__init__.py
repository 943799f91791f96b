"""What can be typed? One module per command of the first level: names, options and help. The doing is beside."""
