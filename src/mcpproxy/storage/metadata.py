"""Which tables are there? Every room defines its own on this one collection."""

from sqlalchemy import MetaData

metadata = MetaData()
