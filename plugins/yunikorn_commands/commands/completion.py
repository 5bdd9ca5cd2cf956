"""`yunikorn completion`: the script by which a shell completes commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from yunikorn_commands.output import echo

VARIABLE = "_YUNIKORN_COMPLETE"
"""Variable by which the script asks for completions; `yunikorn_commands.command_group` handles it."""
SHELLS = ("bash", "zsh", "fish")
_ZSH_COMPLETION = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }"
"""Command that turns on the completion of zsh, which is off unless ~/.zshrc does so."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Bash, in ~/.bashrc:  eval "$(yunikorn completion bash)"

    Zsh, in ~/.zshrc:  eval "$(yunikorn completion zsh)"

    Fish, in ~/.config/fish/config.fish:  yunikorn completion fish | source
    """
    found = get_completion_class(shell)
    assert found is not None
    # Click's own class for bash would start bash to look for its version, which fails where there is none.
    made = found(context.find_root().command, {}, "yunikorn", VARIABLE)
    script = made.source_template % made.source_vars()
    if shell == "zsh":
        # The first line is a mark for zsh, which loads the script by it from a folder of completions.
        mark, _, rest = script.partition("\n")
        script = f"{mark}\n{_ZSH_COMPLETION}\n{rest}"
    echo(script)
