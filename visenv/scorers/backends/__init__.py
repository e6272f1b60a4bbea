"""Contains the backends of scorers, one in each file; `visenv.registration.SCORERS` lists them."""
