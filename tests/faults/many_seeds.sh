#!/usr/bin/env bash
# Runs a test program in the environment of its target, which names the seeds.
exec "$@"
