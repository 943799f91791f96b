"""Which tools answer a query? `index` holds them, `budget` writes the answer, `explain` says why."""
