"""Types that say when: what their integers count.  May import what `plan` holds beside it; start at `ticks`."""
