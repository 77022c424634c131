"""What the first people who tried pzos stumbled over, and the test that holds each of them away."""

from __future__ import annotations

from pathlib import Path

import pytest

#: What went wrong; below it the test that would see it again.
STUMBLES = """
the same x asked 47 times out of 60
    methods/trust_region/test_solver.py::test_no_query_is_ever_asked_twice_by_an_exact_run
queries=5 spent 38 calls
    test_solving.py::test_no_more_is_asked_than_the_budget_says
a wrong-sign gradient was called converged
    problem/test_differences.py::test_a_wrong_gradient_is_an_error_that_names_the_entry
three stories about whether a study had ended
    cli/test_one_truth.py::test_every_command_tells_the_same_story
pzos run had no certificate where pzos solve had one
    cli/test_one_truth.py::test_a_run_ends_with_a_certificate_inside_its_budget
a budget too small for a certificate said nothing
    cli/test_one_truth.py::test_a_budget_too_small_for_a_certificate_says_so
followers that do not move were called stationary
    test_solving.py::test_followers_that_do_not_move_are_not_called_stationary
a durable run was told that it was kept in memory
    report/test_story.py::test_a_durable_run_is_told_how_to_go_on_and_one_in_memory_that_it_cannot
the example made a study, and its own hint failed
    cli/test_one_truth.py::test_the_example_is_files_only_and_its_hint_works
a program beside the TOML file was not found
    cli/test_one_truth.py::test_a_program_beside_the_description_is_found
a misspelt --solver, nofile.py:x, a failing follower
    cli/test_wrong_inputs.py::test_a_few_as_users_type_them
a wrong command ended in a traceback
    cli/test_wrong_inputs.py::test_a_wrong_command
--solver beside a TOML file was ignored
    cli/test_solve.py::test_what_cannot_be_is_said_in_one_line
--quick judged claims it cannot
    experiments/test_figures.py::test_a_few_instances_are_too_small_to_judge_the_paper
titles of figures were cut
    report/test_drawing.py::test_a_long_title_is_not_cut
rows of a table were missing without a word
    report/test_page.py::test_all_rows_are_there_or_it_says_how_many
progress was an empty log axis
    report/test_charts.py::test_progress_is_never_an_empty_log_axis
numbered axes had ticks at 0.5
    report/test_charts.py::test_many_decisions_are_drawn_with_whole_ticks
before on the map was the start of the search
    report/test_story.py::test_doing_nothing_is_compared_where_it_is_allowed_and_another_than_the_start
the cost had no unit
    report/test_story.py::test_the_cost_has_a_unit_wherever_it_is_told
a result was a page of numbers
    study/test_display.py::test_the_verdict_comes_first_and_ten_lines_are_enough
the table of a run did not name x
    study/test_display.py::test_the_table_names_x
charts held up the text of a report
    browser/test_pages.py::test_the_text_is_there_before_the_charts
small pictures of the gallery were nine falling curves
    docs/test_gallery.py::test_the_small_picture_is_no_curve_over_queries
pzos tell took the study last, all other commands first
    cli/test_by_hand.py::test_asked_told_asked_again_until_nothing_is_left
""".strip().splitlines()


@pytest.mark.parametrize("test", STUMBLES[1::2], ids=STUMBLES[::2])
def test_every_stumble_has_its_test(test: str) -> None:
    file, _, name = test.strip().partition("::")
    assert f"def {name}(" in (Path(__file__).parent / file).read_text(encoding="utf-8")
