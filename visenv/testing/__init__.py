"""What proves an environment: its contract as tests (`contract`), and a toy to try things on."""
