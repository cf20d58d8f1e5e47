#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a Python test file with the system's Python, isolated from the user's packages and settings; it leaves no compiled
# copies of modules behind.
exec python3 -IB "$@"
