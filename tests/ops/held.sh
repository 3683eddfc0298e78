#!/usr/bin/env bash
# Runs a test program in the environment of its target, which holds it to fewer
# instructions or threads than the machine has: held_test in third_party/troupe.bzl.
exec "$@"
