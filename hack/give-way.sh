#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command that gives way to everything else on the machine. `nice` alone does not: Linux first divides the processors between
# sessions (autogroup) and control groups, and only then by niceness within one. So start this with setsid. The session is to have a
# tenth of what another one has, so that tests in it that wait for a second still get to run in it.
[ -w /proc/self/autogroup ] && echo 10 >/proc/self/autogroup
exec nice -n 19 "$@"
