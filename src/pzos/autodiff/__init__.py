"""Leaders by automatic differentiation: one file per library, imported only when called."""
