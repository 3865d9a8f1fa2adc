"""What `sqlalchemy.testing.suite` has."""

from sqlalchemy.testing.suite import *  # noqa: F403
