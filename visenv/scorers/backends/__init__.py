"""The backends of scorers, one file each; `visenv.registration.SCORERS` names them."""
