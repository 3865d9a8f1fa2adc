"""Test suites of other projects, run with Fuseline in the place of the backend that they know (`make foreign DIR=...`)."""
