"""`mainspring why`: Explain why a job does not run."""

import typer
from rich.text import Text

from mainspring.api.models.why import WhyModel, WhyReasonModel
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.options import JobNumber
from mainspring.cli.output import STATE_STYLES, Out, console
from mainspring.cli.times import instant
from mainspring.client import Client

app = typer.Typer()


@app.command("why", epilog=example("mainspring why 7"))
@connected
def why(client: Client, out: Out, job_id: JobNumber) -> None:
    """Explain why a job does not run.

    Below each reason stands the command that resolves it; the first reason holds the job up.
    """
    out.show(client.jobs.why(job_id), _print)


def _print(found: WhyModel) -> None:
    console.print(_heading(found))
    for reason in found.reasons:
        console.print(_line(reason))
        if reason.fix is not None:
            console.print(Text(f"    {reason.fix}", style="cyan"))
    if found.estimate is not None:
        at = instant(found.estimate.at)
        console.print(Text(f"May start {at}: {found.estimate.basis}.", style="dim"))


def _heading(found: WhyModel) -> Text:
    line = Text(f"Job {found.job_id}")
    if found.state is not None:
        line.append(" is ").append(str(found.state), style=STATE_STYLES[found.state])
    if found.waits_for:
        line.append(f" (waits for {found.waits_for})", style="dim")
    return line.append(".")


def _line(reason: WhyReasonModel) -> Text:
    return Text("  ").append(reason.code, style="yellow").append(f"  {reason.sentence}")
