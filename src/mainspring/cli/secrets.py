"""`mainspring secrets ...`: keys for what is encrypted."""

from dataclasses import asdict
from typing import Annotated

import typer

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, make_settings, run
from mainspring.services.rotations import Rotation
from mainspring.services.secrets import generate_key as make_key

secrets = typer.Typer(help="Keys that secrets are encrypted with.", no_args_is_help=True)


@secrets.command()
def generate_key() -> None:
    """Print a new key for the setting encryption_keys."""
    # Not through the console, which would break it where the terminal is narrow.
    print(make_key())


@secrets.command()
def rotate(
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="How many at a time.")] = 500,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Encrypt everything under the first key; exit 1 if something is left."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    done = run(app, app.secrets.arotate(batch=batch))
    if as_json:
        output.print_json(asdict(done))
    else:
        output.console.print(_sentence(done), highlight=False, soft_wrap=True)
    if done.left or done.unreadable:
        raise typer.Exit(1)


def _sentence(done: Rotation) -> str:
    told = f"{done.jobs} jobs, {done.finished} finished jobs, {done.schedules} schedules"
    text = f"encrypted anew: {told}"
    if done.left:
        text += f"; {done.left} are held by someone, run it again"
    if done.unreadable:
        text += f"; {done.unreadable} are under a key that is not in encryption_keys"
    return text
