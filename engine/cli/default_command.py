"""What the command `fuseline` does where no command is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperGroup

if TYPE_CHECKING:
    from typer import Context

_OF_ALL = ("--version", "--config", "--help", "-h")  # options that stand before a command


class ShellByDefault(TyperGroup):
    """Commands of which `shell` is meant where none is named, as other databases' shells start: `fuseline`, `fuseline -c "select 1"`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]  # newer Typers have a Context of Click's
        """Take what stands behind the options of all commands for the shell's, if it begins with none."""
        at = 0
        while at < len(args) and args[at].partition("=")[0] in _OF_ALL:
            at += 2 if args[at] == "--config" else 1
        if not ctx.resilient_parsing and (at >= len(args) or args[at].startswith("-")):
            args = [*args[:at], "shell", *args[at:]]
        return super().parse_args(ctx, args)
