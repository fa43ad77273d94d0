"""What OpenSearch lacks, by the tests of the Elasticsearch connector that need it."""

from __future__ import annotations

TIME_SERIES, MODE, TREE = "index.mode", "the mode of _source", "flattened, dense_vector and others"
LACKS = {
    "test_index_without_objects_is_refused_unaltered": "subobjects",
    "test_field_that_takes_objects_as_a_whole_stays_as_it_is[{'type': 'flattened'}]": "flattened",
    "test_vectors_come_wherever_the_index_keeps_them": "dense_vector",
    "test_documents_that_are_not_kept_by_a_setting_can_not_be_read": MODE,
    "test_columns_have_the_types_of_the_mapping": TREE,
    "test_rows_have_what_the_cluster_says_of_the_fields": TREE,
    "test_numbers_beside_vectors_keep_their_digits_where_the_index_does": "dense_vector",
    "test_what_indices_have_of_an_object_is_put_together_whatever_its_kind": "passthrough",
    "test_column_with_a_dot_is_found_where_the_mapping_keeps_dots": "subobjects",
    "test_decided_rows_are_not_sent_again_through_a_pipeline_that_moves_them": "reroute",
    "test_pipeline_that_moves_rows_is_refused_at_start[reroute]": "reroute",
    "test_pipeline_of_the_index_that_calls_one_that_moves_rows": "reroute",
    "test_what_an_index_or_pipeline_names_and_is_gone_is_told": "ignore_missing_pipeline",
    "test_index_that_takes_objects_apart_has_no_room_for_the_guard": "subobjects",
    "test_data_stream_that_the_cluster_does_not_create_is_named": "allow_auto_create",
    "test_limit_that_a_new_index_exceeds_is_named_and_can_be_raised[depth]": "depths above 1000",
    "time series": TIME_SERIES,
    "test_time_series_are_followed_where_they_keep_numbers": TIME_SERIES,
    "{'_source': {'mode':": MODE,
    "test_new_index_finds_each_type_as_what_it_is": "an index of the values of any map",
    "test_own_indices_are_what_they_must_be_whatever_a_template_says[other fields]": "such merges",
    "test_own_index_that_keeps_less_than_is_written": "templates that outlive a request's _source",
    "test_own_index_that_asks_for_a_routing": "templates that outlive a request's _routing",
    "{'runtime':": "runtime fields",
    "test_an_index_that_has_something_else_than_documents_is_not_asked[hidden]": "runtime fields",
    "test_pages_are_of_about_the_same_bytes": "a sort value of each document, before 3.3",
    "test_an_index_that_goes_while_it_is_read": "a sort value of each document, before 3.3",
    "test_a_point_in_time_that_is_lost_is_told[closed]": "the path _pit, which the test uses",
}
"""By a part of the name of a test."""


def lacking(name: str) -> str:
    """What OpenSearch lacks for a test; empty if it lacks nothing."""
    return next((what for part, what in LACKS.items() if part in name), "")
