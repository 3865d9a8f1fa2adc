"""SQLAlchemy's own tests for dialects: its pytest plugin, which takes over a whole run of pytest, so they have a folder for themselves."""

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

import provisioned_database  # noqa: E402, F401
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

pytest_plugins = ("skipped_tests",)
