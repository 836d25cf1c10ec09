"""`mainspring admin secrets ...`: keys for what is encrypted. The keys are in the settings, so this
works on the database itself."""

from dataclasses import asdict
from typing import Annotated

import typer

from mainspring.app import Mainspring
from mainspring.cli.examples import example
from mainspring.cli.last_up import say_which
from mainspring.cli.options import DatabaseUrl, DataDir, make_settings
from mainspring.cli.output import AsJson, Format, Out, OutputFormat
from mainspring.services.key_rotation import Rotation
from mainspring.services.secrets import generate_key as make_key

secrets = typer.Typer(help="Manage encryption keys.", no_args_is_help=True)


@secrets.command(epilog=example("mainspring admin secrets generate-key"))
def generate_key() -> None:
    """Generate a key for the setting encryption_keys."""
    # Not through the console, which would break it where the terminal is narrow.
    print(make_key())


@secrets.command(epilog=example("mainspring admin secrets rotate"))
def rotate(
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Number of rows per batch.")] = 500,
    output_format: OutputFormat = Format.TABLE,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Re-encrypt everything with the first key; exit 1 if something is left."""
    with Mainspring(settings=make_settings(database_url, data_dir)) as app:
        done = app.secrets.rotate(batch=batch)
        say_which(app.database)
    Out.chosen(output_format, as_json=as_json).say(asdict(done), _sentence(done))
    if done.left or done.unreadable or done.refused:
        raise typer.Exit(1)


def _sentence(done: Rotation) -> str:
    counts = f"{done.jobs} jobs, {done.finished} finished jobs, {done.schedules} schedules"
    text = f"re-encrypted: {counts}"
    if done.left:
        text += f"; {done.left} are locked by other transactions; run it again"
    if done.unreadable:
        text += (
            f"; {done.unreadable} cannot be read, because their key is not in encryption_keys or "
            f"they were changed: {_named(done.unreadable_rows, done.unreadable)}"
        )
    if done.refused:
        text += (
            f"; {done.refused} cannot be written: {_named(done.refused_rows, done.refused)}; "
            "remove the cause and run it again"
        )
    return text


def _named(rows: list[str], count: int) -> str:
    return ", ".join(rows) + (", ..." if count > len(rows) else "")
