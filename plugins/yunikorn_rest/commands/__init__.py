"""Commands of operators, which ask and change a running scheduler over REST."""
