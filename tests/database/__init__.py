"""Databases in folders: that they last, whole, and who may open them."""
