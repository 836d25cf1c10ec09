"""Rows of the table that no case sends."""

_TELEMETRY = "tests/telemetry/test_telemetry.py"
_REPEATS = "tests/telemetry/test_repeats.py"
_CONNECTIONS = "tests/api/test_connections.py"
_DISPATCH = "tests/runtime/dispatcher/test_budgets.py"
_STREAMS = "tests/api/test_stream_shares.py"
_SCHEMAS = "tests/domain/test_schemas.py"
ELSEWHERE = {
    "bulk operation: jobs counted before it starts": "tests/api/test_operations.py::"
    "test_a_count_that_would_look_at_too_much_says_so",
    "command: output": "tests/domain/jobs/test_tails.py::"
    "test_the_tail_is_that_of_the_whole_however_it_came",
    "connection: body of a request": f"{_CONNECTIONS}::test_a_body_that_never_comes_is_refused",
    "connection: header of a request": f"{_CONNECTIONS}::"
    "test_headers_that_never_end_end_the_connection",
    "connections": f"{_CONNECTIONS}::test_too_many_connections_of_one_address_are_refused",
    "error: groups of a definition on a day": "tests/store/test_error_groups.py::"
    "test_a_definition_has_so_many_groups_a_day",
    "error: line shown of a group": "tests/domain/jobs/test_error_keys.py::"
    "test_any_text_has_a_key_and_a_sample_of_one_line",
    "error: message of an exception": "tests/runtime/worker/test_failures.py::"
    "test_an_endless_message_is_cut",
    "error: stored text": "tests/domain/jobs/test_outcomes.py::test_longer_text_loses_its_middle",
    "error: traceback": "tests/runtime/worker/test_failures.py::"
    "test_a_traceback_has_so_many_frames_at_most",
    "event: all its triggers together": f"{_DISPATCH}::"
    "test_hundreds_of_copies_of_an_event_fail_and_nobody_waits",
    "event: triggers that match it": f"{_DISPATCH}::test_an_event_is_given_to_500_triggers",
    "event: writing its jobs": f"{_DISPATCH}::test_an_event_that_cannot_be_written_fails_by_itself",
    "job: results stored together, with the last progress": "tests/runtime/worker/"
    "test_reporter.py::test_a_batch_has_neither_too_many_reports_nor_too_many_bytes",
    "log line: value of a field": f"{_TELEMETRY}::test_a_line_is_not_endless",
    "log lines of one cause (event, definition, kind of error, place)": f"{_REPEATS}::"
    "test_more_within_a_second_are_counted",
    "log: causes in one second": f"{_REPEATS}::test_very_many_causes_count_as_one",
    "page: a list of approvals, audit entries, definitions, events, jobs, schedules, slots or"
    " triggers": "tests/api/test_large_lists.py::test_a_page_has_a_bounded_size",
    "page: attempts of a job": "tests/api/test_large_lists.py::"
    "test_of_many_attempts_the_latest_are_whole",
    "page: error of a job in a list": "tests/api/test_large_lists.py::"
    "test_jobs_of_a_flow_have_the_first_line_of_their_error",
    "page: jobs looked at for a filter": "tests/api/test_large_lists.py::"
    "test_a_page_looks_at_so_many_jobs",
    "page: progress message of a job in a list": "tests/api/test_job_lists.py::"
    "test_a_list_of_large_jobs_is_short",
    "payload claimed over HTTP: nesting": "tests/api/test_depth.py::"
    "test_what_plain_sql_nests_deeply_can_be_listed_and_claimed_around",
    "schedule: search for its next slot": "tests/domain/schedules/test_open_times.py::"
    "test_a_search_takes_so_many_steps_at_most",
    "slot: details of its run's result": "tests/runtime/executors/test_run_history.py::"
    "test_large_details_are_left_out",
    "slot: message of its run's result, reason": "tests/runtime/executors/test_run_history.py::"
    "test_large_details_are_left_out",
    "worker over the API: answer to a claim": "tests/api/test_work_claims.py::"
    "test_an_answer_has_a_bounded_size_and_no_job_is_lost",
    "payload template: result": "tests/services/test_triggers.py::"
    "test_a_trial_holds_to_the_size_of_payloads",
    "payload: check against its schema": "tests/api/test_budgets.py::"
    "test_hundreds_of_thousands_of_wrong_items_keep_nobody_waiting",
    "payload: problems that are named": f"{_SCHEMAS}::"
    "test_all_problems_of_up_to_100_values_are_counted",
    "regular expression in a JSON Schema": f"{_SCHEMAS}::test_no_pattern_can_hang",
    "request: database connections of one tenant at a time; operators count as one": "tests/db/"
    "test_request_pools.py::test_who_uses_its_whole_share_is_refused_and_others_are_not",
    "request: time of one SQL statement": "tests/db/test_request_pools.py::"
    "test_a_search_that_takes_too_long_is_stopped",
    "request: wait for a lock in the database": "tests/budgets/test_locked_rows.py::"
    "test_cancels_of_a_locked_job_keep_nobody_waiting",
    "requests of one caller": "tests/api/test_rate_limits.py::"
    "test_spellings_of_a_header_are_one_caller",
    "stream of a job: result": "tests/api/test_streams.py::"
    "test_a_result_is_told_at_the_end_unless_it_is_too_large",
    "streams of lists and summaries: looked at at a time": f"{_STREAMS}::"
    "test_no_frame_of_another_tenant_waits_for_lists",
    "streams of one caller": f"{_STREAMS}::test_a_caller_has_so_many_streams",
}
"""Rows whose input is no request, or is cut and not refused: the test of each."""
