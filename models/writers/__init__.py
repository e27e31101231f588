"""Plans as texts of other frameworks; what a framework cannot run as planned is refused with the reason."""
