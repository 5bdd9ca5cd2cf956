"""Gang placement policies on synthetic racks, beside those of other schedulers and the optimum."""
