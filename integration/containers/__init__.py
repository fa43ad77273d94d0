"""The contract suites against servers in containers: `make test-containers`.

Where no engine answers, root gets one from Debian; where no image can be pulled, it is built from a
debootstrapped tree. All addresses are on 127.0.0.1.
"""
