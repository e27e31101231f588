"""What the command line offers: one module for each command, and what they share."""
