"""The text form of a timeline: lines, legend and sentences."""

import io

import pytest
from rich.cells import cell_len
from small_timelines import timeline_of, training_problem

from partita.service.reports.printing import PIPED_WIDTH
from partita.service.reports.timeline_text import print_timeline

EXPECTED = """\
1f1b: 2 stages on 2 ranks, 3 microbatches
n0:0 F0========f1-------........................B0=============F2=======b1------------....................B2============
n1:0 ..............F0========B0============f1--------b1------------..........F2=======B2=============...................
idle 555555555555552    4555555555555555555555551                  4555555554         3555555555555569999855555555555555
     0 s                                                      12.00 s                                            24.00 s
f forward, b backward, the microbatch, - goes on; capitals and =: critical path; . waits; idle: how many tenths of the
ranks do

Makespan 24.00 s; bubble 37.5 % of device time.
The critical path spends 41.7 % in stage 0, 41.7 % in stage 1, 8.33 % in transfers from stage 0 to 1 and 8.33 % in
transfers from stage 1 to 0; transfers are 16.7 % of it.
"""
"""F 2 s, B 3 s and a transfer of 1 s: 24 s, of which the path spends 10 on either stage and 4 in transfers."""


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(problem):
    text = io.StringIO()
    print_timeline(*timeline_of(problem), text)
    return text.getvalue()


def test_the_whole_text():
    """Tests every line of a small pipeline."""
    assert shown(training_problem()) == EXPECTED


@pytest.mark.parametrize("columns", [10, 40, 100])
def test_width_of_a_terminal(columns, monkeypatch):
    """Tests that lines end at the terminal's edge, that kinds have colors, and that no terminal is too narrow."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.delenv("LINES", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    timeline, candidate = timeline_of(training_problem())
    print_timeline(timeline, candidate, terminal)
    assert "\x1b[" in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    plain = Terminal()
    print_timeline(timeline, candidate, plain)
    assert "\x1b[3" not in plain.getvalue()
    if columns >= 40:
        ranks = [line for line in plain.getvalue().splitlines() if line.startswith("n")]
        assert [len(line) for line in ranks] == [columns, columns]


@pytest.mark.parametrize("name", ["n" * 200, "節" * 100], ids=["narrow", "wide"])
def test_long_names(name):
    """Tests that of a long name the end is shown, and that time keeps most of the width."""
    problem = training_problem()
    node = problem.cluster.nodes[0].model_copy(update={"name": name})
    cluster = problem.cluster.model_copy(update={"nodes": (node,)})
    first = shown(problem.model_copy(update={"cluster": cluster})).splitlines()[1]
    assert first.startswith("…")
    assert f"{name[-1]}0:0 F0===" in first.replace("  ", " ")
    assert cell_len(first) == PIPED_WIDTH
    assert cell_len(first.split()[0]) <= PIPED_WIDTH // 3


def test_several_stages_of_a_rank():
    """Tests that later stages of a rank are marked, and split backward passes explained."""
    text = shown(training_problem(chunks=2, schedule="zb_v"))
    assert "F0'===I0'===" in text
    assert "i input gradient, w weight gradient, the microbatch, - goes on; ' later stage of its rank" in text
    assert "4 stages on 2 ranks" in text


def test_more_actions_than_columns():
    """Tests that a long pipeline has letters only, and that nothing is wider than the text."""
    lines = shown(training_problem(ranks=4, num_microbatches=200)).splitlines()
    ranks = [line for line in lines if line.startswith("n")]
    assert len(ranks) == 4
    assert all(set(line.split(" ")[1]) <= set("fFbB-=.") for line in ranks)
    assert all(len(line) <= PIPED_WIDTH for line in lines)


def test_blocking_says_that_transfers_are_included():
    """Tests that the shares of stages say what they contain."""
    text = shown(training_problem(communication="blocking")).replace("\n", " ")
    assert "the stages' times include their transfers." in text


def test_few_parts_are_all_named_and_many_are_added_up():
    """Tests one part, and more than can be named."""
    assert "The critical path spends 100.0 % in stage 0.\n" in shown(training_problem(ranks=1))
    assert "other parts; transfers are" in shown(training_problem(ranks=4)).replace("\n", " ")


def test_no_time_at_all():
    """Tests a plan whose layers take no time."""
    problem = training_problem(output_bytes=0, schedule="forward_only")
    layers = [layer.model_copy(update={"forward_s": 0.0}) for layer in problem.model.layers]
    text = shown(problem.model_copy(update={"model": problem.model.model_copy(update={"layers": tuple(layers)})}))
    assert "Makespan 0 s." in text
    assert "The critical path takes no time." in text


def test_what_follows_the_makespan():
    """Tests that an optimizer's step is told apart from the makespan."""
    optimizer = {"gradient_bytes_per_weight_byte": 0.0, "state_bytes_per_weight_byte": 0.0, "step_s": 7.0}
    assert "Makespan 24.00 s, then 7.000 s once per iteration; bubble" in shown(training_problem(optimizer=optimizer))
