"""What answers and timelines look like: reports, charts, and files for other programs."""
