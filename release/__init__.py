"""What makes the documentation's site and a release; `make docs` and `make release` run it."""
