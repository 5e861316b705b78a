"""What is printed of the measures."""


class Table:
    """The rows that were measured."""

    def __init__(self, heading=True):
        if heading:
            print(f"{'what':58} {'budget':>12} {'measured':>12}  met", flush=True)

    def row(self, what, budget, measured, met, detail=""):
        word = "-" if met is None else "yes" if met else "NO"
        print(f"{what:58} {budget:>12} {measured:>12}  {word:4} {detail}", flush=True)
