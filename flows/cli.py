"""The command line: parsing here, doing in `flows.commands`, imported only when it is needed.

Exit codes: 0 done (also partial, which is said), 1 failed, 2 usage, 3 refused, 4 a service is not
there. An error is one line on stderr.
"""

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from engines.errors import ReelgraphError

app = typer.Typer(
    name="reelgraph",
    help="Turn buckets of video into facts that SQL can ask about.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else.")]


@app.command()
def up(*, as_json: Json = False) -> None:
    """Start the embedded stack: Postgres, object store, Prefect server, worker, receiver."""
    from flows.commands import stack

    stack.up(as_json=as_json)


@app.command()
def down(*, as_json: Json = False) -> None:
    """Stop the embedded stack; data stays."""
    from flows.commands import stack

    stack.down(as_json=as_json)


@app.command()
def status(*, as_json: Json = False) -> None:
    """Say what runs, where, and whether it is healthy."""
    from flows.commands import stack

    stack.status(as_json=as_json)


@app.command()
def run(
    sources: Annotated[
        list[str], typer.Argument(help="Files, directories, s3://bucket/key or s3://bucket/prefix/")
    ],
    *,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", help='stage.parameter=value, e.g. reason.questions=["why"]'),
    ] = None,
    as_json: Json = False,
) -> None:
    """Process videos by the real flow on the real worker, and wait."""
    from flows.commands import run as command

    command.run(sources, parameters or [], as_json=as_json)


@app.command()
def inspect(
    file: Annotated[Path, typer.Argument(help="A media file; no service is needed.")],
    *,
    as_json: Json = False,
) -> None:
    """Say what a file truly is: streams, exact times, shots, problems."""
    from flows.commands import inspect as command

    command.inspect(file, as_json=as_json)


@app.command()
def show(
    video: Annotated[
        str,
        typer.Argument(
            help="File, s3://bucket/key, key, SHA-256 or video id; s3://bucket/prefix* is a corpus."
        ),
    ],
    *,
    graph: Annotated[Path | None, typer.Option(help="Draw the causal graph to this SVG.")] = None,
    as_json: Json = False,
) -> None:
    """Show a video's timeline, causal graph and chains, answers and coverage."""
    from flows.commands import show as command

    command.show(video, graph=graph, as_json=as_json)


@app.command()
def mine(
    source: Annotated[
        str | None, typer.Argument(help="s3://bucket/prefix; every bucket without it.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Mine the causal graph of many videos together, and wait."""
    from flows.commands import mine as command

    command.mine(source, as_json=as_json)


@app.command()
def sql(
    query: str,
    *,
    echo: Annotated[bool, typer.Option(help="Print the query above its answer.")] = False,
    as_json: Json = False,
) -> None:
    """Run a query as the reader role."""
    from flows.commands import query as command

    command.sql(query, echo=echo, as_json=as_json)


@app.command()
def dsn() -> None:
    """Print the address of the database for the reader role."""
    from flows.commands import query as command

    command.dsn()


@app.command()
def search(
    text: str,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    as_json: Json = False,
) -> None:
    """Find moments across all videos."""
    from flows.commands import query as command

    command.search(text, limit=limit, as_json=as_json)


@app.command()
def why(fact_id: str, *, as_json: Json = False) -> None:
    """Show the lineage of one fact down to bytes, weights, prompt and code."""
    from flows.commands import query as command

    command.why(fact_id, as_json=as_json)


@app.command()
def doctor(*, as_json: Json = False) -> None:
    """Say what this machine can run, what is missing, and how to get it."""
    from flows.commands import doctor as command

    command.doctor(as_json=as_json)


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="Which one; a wrong name lists them.")],
    *,
    train: Annotated[Path | None, typer.Option(help="Training file, where one is taken.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test file, where one is taken.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Corpus, where one is taken.")] = None,
    as_json: Json = False,
) -> None:
    """Measure: every row beside its baseline and its limit; exit 1 when a row misses its mark."""
    from flows.commands import bench as command

    command.bench(name, {"train": train, "test": test, "corpus": corpus}, as_json=as_json)


@app.command()
def train(
    what: Annotated[str, typer.Argument(help="Which model; a wrong name lists them.")],
    *,
    skeletons: Annotated[Path, typer.Option(help="Directory with the skeleton data sets.")],
    out: Annotated[Path, typer.Option(help="Directory for weights, rules, record, manifest.")],
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
) -> None:
    """Train a model that ships, and write it down with its record."""
    from flows.commands import train as command

    command.train(what, skeletons, out, seed=seed)


def main() -> NoReturn:
    """Entry point: run a command and turn our errors into one line and an exit code."""
    try:
        app(standalone_mode=True)
    except ReelgraphError as error:
        sys.stderr.write(f"reelgraph: {' '.join(str(error).split())}\n")
        sys.exit(error.exit_code)
    sys.exit(0)
