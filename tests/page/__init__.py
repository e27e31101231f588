"""Tests of the page in a real browser; a package, so that they have one browser together and no others have it."""
