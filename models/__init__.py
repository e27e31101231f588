"""What a planning problem and its answer are."""
