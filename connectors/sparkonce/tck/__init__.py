"""The conformance kit: rules as data, and the suites that check a sink or a source by them.

`StoreContract` is for connectors on this core, `StreamingContract` for any streaming sink of
PySpark, `BatchContract` for any batch sink, `SourceContract` for any streaming source.
docs/writing-a-connector.md shows how to use them.
"""
