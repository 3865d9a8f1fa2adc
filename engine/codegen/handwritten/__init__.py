"""Kernels that no plan generates: numbering and narrowing of columns, group numbers, LIKE over long text."""
