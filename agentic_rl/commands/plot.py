"""`agentic-rl plot [FOLDER ...]`: learning curves as a picture."""

from pathlib import Path

HELP = "learning curves as a picture: agentic-rl plot outputs/ [--out curve.png]"
HYDRA = False


def main(argv: list[str]) -> int:
    from agentic_rl.commands._arguments import Arguments
    from agentic_rl.plots import draw, load_curves, save

    parser = Arguments("plot", "Success by update, training return, success by task type.")
    add = parser.add_argument
    where = "run folders, or folders of runs; outputs where none is named"
    add("folders", nargs="*", default=["outputs"], metavar="FOLDER", help=where)
    kinds = "the picture; its ending (.png, .svg, .pdf) says the kind (curve.png)"
    add("--out", type=Path, default=Path("curve.png"), metavar="FILE", help=kinds)
    options = parser.parse_args(argv)
    save(draw(load_curves(options.folders)), options.out)
    print(options.out)
    return 0
