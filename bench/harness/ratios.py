# SPDX-License-Identifier: Apache-2.0
"""ratios.py - what a row of the bench says: the median of what its turns gave, how far they lie apart, and whether the goal is met."""

import dataclasses
import statistics

REPEATS_LEAST = 5
SPREAD_MAX = 0.25  # the middle half of the turns may lie so far apart, as a share of their median; beyond it nothing is said

MET, MISSED, NOT_SHOWN, REPORTED = "met", "missed", "not shown", "reported"


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table: a candidate, what it is compared with (None: with nothing), and the goal."""

    workload: str
    ours: str
    other: str | None = None
    metric: str = "rate"  # jobs per second; else a field of what a turn answers
    least: float | None = None  # the goal, where more is better
    most: float | None = None  # where less is
    unit: str = "x"

    def goal(self):
        if self.least is None and self.most is None:
            return "-"
        return f">= {self.least:g}" if self.least is not None else f"<= {self.most:g}"


def value(turn, metric):
    """What a turn gave; None where it did not."""
    if metric == "rate":
        return turn["jobs"] / turn["seconds"] if turn.get("seconds") else None
    return turn.get(metric)


def spread(values):
    """How far the middle half of them lies apart, as a share of the median."""
    if len(values) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / abs(middle) if middle else 0.0


def judge(row, turns, repeats_least=REPEATS_LEAST, spread_max=SPREAD_MAX):
    """A row as it is written down; turns: for each candidate those that it took, in order."""
    ours = [value(turn, row.metric) for turn in turns.get(row.ours, [])]
    others = [value(turn, row.metric) for turn in turns.get(row.other, [])] if row.other else [1] * len(ours)
    values = [a / b for a, b in zip(ours, others) if a is not None and b]
    found = {"workload": row.workload, "candidate": row.ours, "compared_with": row.other, "metric": row.metric, "unit": row.unit,
             "goal": row.goal(), "least": row.least, "most": row.most, "repeats": len(values), "values": values,
             "median": None, "spread": None, "verdict": NOT_SHOWN, "why": None,
             "rates": {name: statistics.median(known) for name, known in ((row.ours, [v for v in ours if v is not None]),
                                                                           (row.other, [v for v in others if v is not None]))
                       if name and known}}
    if not values:
        found["why"] = "not measured"
        return found
    found["spread"] = spread(values)
    if found["spread"] > spread_max:
        found["why"] = "spread too wide"
        return found
    found["median"] = statistics.median(values)
    if len(values) < repeats_least:
        found["why"] = "too few repeats"
    elif row.least is None and row.most is None:
        found["verdict"] = REPORTED
    else:
        is_met = found["median"] >= row.least if row.least is not None else found["median"] <= row.most
        found["verdict"] = MET if is_met else MISSED
    return found


HEAD = ("workload", "compared with", "median", "spread", "goal", "verdict")


def cells(found):
    """A row of the table, as texts."""
    median = "-" if found["median"] is None else f"{found['median']:.3g} {found['unit']}" if found["unit"] != "x" else f"{found['median']:.2f} x"
    if found["median"] is not None and found["unit"] != "x" and found["median"] >= 100:
        median = f"{found['median']:,.0f} {found['unit']}"
    wide = "-" if found["spread"] is None else f"{100 * found['spread']:.0f} %"
    verdict = found["verdict"] if not found["why"] else f"{found['verdict']} ({found['why']})"
    return (found["workload"], found["compared_with"] or "-", median, wide, found["goal"], verdict)


def text_table(rows):
    lines = [HEAD, *map(cells, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    return "\n".join([shown[0], "-" * len(shown[0]), *shown[1:]])


def markdown_table(rows):
    """The same for docs/performance.md, with what each of the two did by itself."""
    lines = ["| " + " | ".join((*HEAD, "by themselves")) + " |", "|" + "---|" * (len(HEAD) + 1)]
    for found in rows:
        rates = ", ".join(f"{name} {rate:,.0f}/s" for name, rate in found["rates"].items()) if found["metric"] == "rate" else ""
        lines.append("| " + " | ".join((*cells(found), rates)) + " |")
    return "\n".join(lines)
