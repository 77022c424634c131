"""The default method: f minimised on a model of the response inside a trust region."""
