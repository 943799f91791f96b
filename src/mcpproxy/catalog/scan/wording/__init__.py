"""Which wording is suspect? One module for each thing that a text may be after."""
