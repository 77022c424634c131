"""What every room stands on: types, errors, checks of arguments, random numbers by address, threads."""
