"""The commands of ``partita`` and their options."""

import typer

from partita.service.commands.batch import batch
from partita.service.commands.data import import_profile, schema
from partita.service.commands.frontier import frontier
from partita.service.commands.keys import app as keys
from partita.service.commands.plan import evaluate, plan
from partita.service.commands.plot import plot
from partita.service.commands.profile import profile
from partita.service.commands.serve import serve
from partita.service.commands.timeline import export, timeline
from partita.service.commands.verify import verify
from partita.service.commands.worker import worker

app = typer.Typer(
    help="Plans pipeline parallelism: stages and their placement, with a proven bound.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("plan")(plan)
app.command("evaluate")(evaluate)
app.command("frontier")(frontier)
app.command("batch")(batch)
app.command("timeline")(timeline)
app.command("plot")(plot)
app.command("profile")(profile)
app.command("verify")(verify)
app.command("import")(import_profile)
app.command("export")(export)
app.command("schema")(schema)
app.command("serve")(serve)
app.command("worker")(worker)
app.add_typer(keys, name="keys")


def _show_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        from partita import __version__

        typer.echo(f"partita {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Plans pipeline parallelism: stages and their placement, with a proven bound."""
