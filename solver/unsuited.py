"""What a search raises that another one should take the place of."""


class Unsuited(Exception):
    """Raised where a search is not the right one."""


class TooManySteps(Unsuited):
    """Raised where there would be more to look at than is worth it."""
