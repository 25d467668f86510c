#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# give-way.sh N COMMAND...: runs a command that gives way to others on the machine, the more the greater N is, from 1 to 19. `nice` alone
# does not: Linux first divides the processors between sessions (autogroup) and control groups, and only then by niceness within one. So
# start this with setsid. With 10 the session has a tenth of what another one has, so that tests in it that wait for a second still get
# to run in it; with 5 it has a third.
[ -w /proc/self/autogroup ] && echo "$1" >/proc/self/autogroup
shift
exec nice -n 19 "$@"
