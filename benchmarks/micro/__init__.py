"""Single mechanisms measured on their own, on a GPU."""
