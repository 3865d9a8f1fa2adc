"""Defects found from outside, each with the query or the file that showed it, by the topic of its fix."""
