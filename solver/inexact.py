"""What is said where numbers are too far apart to be counted exactly."""

BLURRED = (
    "the times of this problem are too far apart to be counted exactly: plans are told apart to within {:.2g} s only; "
    "leave out or correct what is far slower than the rest (a bandwidth, a latency)"
)
"""Of all times, with the seconds that they can be off."""

OUT_OF_FOCUS = (
    "{} more plans were found, whose times are too far from those of the best to be counted exactly; left out"
)
"""Where fewer plans are given than there are."""

COARSE = (
    "the weighted sum is counted in whole numbers of 64 bits, which have to hold the worst plan as well: plans are "
    "told apart to within a fraction of {:.2g} only; leave out what hardly counts, or write a list of metrics"
)
"""Of a weighted sum, with the fraction that it can be off."""
