"""The conformance kit: rules as data, and the suites that prove a sink or a source by them.

`StoreContract` is for connectors on this core, `StreamingContract` for any streaming sink of
PySpark, `BatchContract` for any sink of batches, `SourceContract` for any source of streams.
docs/writing-a-connector.md shows how to join.
"""
