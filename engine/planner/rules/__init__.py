"""The optimizer's rules, one file each."""
