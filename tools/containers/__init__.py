"""The contract suites against servers in containers: `make test-containers`.

Where no engine answers, root gets one from Debian. Images are built from debootstrapped trees, so
that no registry is needed and each run tests the same; tests that are run by themselves pull their
image (`SPARKONCE_TEST_REDIS=container`). All addresses are on 127.0.0.1.
"""
