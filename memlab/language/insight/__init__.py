"""What a policy says of itself: terms, trees, comparisons, sensitivity, formulas, coloured source."""
