"""Records of torch's structured trace as events."""
