"""Reading a fitted model: stability of the weights, explanations of decisions."""
