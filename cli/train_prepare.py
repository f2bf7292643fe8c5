"""`remask train prepare`: a folder that can be trained, made of a plain autoregressive checkpoint."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("source")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to make: new or empty.")
@click.option("--mask-token", default="", help="The token that stands for what is not written yet.")
@click.option("--prefix-token", default="", help="The token before the text that stands before the hole.")
@click.option("--suffix-token", default="", help="The token before the text that stands behind the hole.")
@click.option("--name", default="", help="What the model is called.")
def prepare(source: str, out: Path, mask_token: str, prefix_token: str, suffix_token: str, name: str) -> None:
    """Prepare SOURCE, a LLaMA-, Qwen2- or Qwen3-shaped folder or a name in the hub cache, for training.

    The weights stay as they are; config.json says how they will denoise. Tokens are found in the tokenizer where they
    are not named.
    """
    from remask.engine.training.prepare import Marks
    from remask.engine.training.prepare import prepare as run

    spec = run(source, out, marks=Marks(mask=mask_token, prefix=prefix_token, suffix=suffix_token), name=name)
    click.echo(f"{spec.name} ({spec.shape.parameters / 1e9:.3f} billion parameters) is ready to be trained in {out}.")
