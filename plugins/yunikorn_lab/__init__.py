"""Work on files, without a running scheduler: simulations, reports, and checks of configurations."""
