#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command, a compiler or what starts compilers, and lets all programs have huge pages meanwhile, as Debian's own
# kernel does. Kernels of cloud machines often give them only to programs that ask. Compilers do not ask, and on a virtual
# machine they then spend much of their time on page faults (docs/decisions/0047-compilers-get-huge-pages.md has the figures).
#
# The setting is the machine's. The last of these scripts to end puts it back. What a killed one left behind is put back by the
# next, or by `bin/lab down`. Where the setting cannot be written, and with MFG_HUGE_PAGES=0, the command just runs.
#
#   huge-pages.sh COMMAND [ARGUMENT...]
set -eu
: "${1:?the command is missing}"
# The two variables are for the test.
setting=${MFG_HUGE_PAGES_SETTING:-/sys/kernel/mm/transparent_hugepage/enabled}
before=${MFG_HUGE_PAGES_BEFORE:-/run/mfg-huge-pages}

if [ "${MFG_HUGE_PAGES:-1}" = 0 ] || [ ! -w "$setting" ] || ! command -v flock >/dev/null; then
    exec "$@"
fi

# All that run share a lock. It is on the setting itself: that file is always there, and nobody removes it.
exec 9<"$setting"
# Another script holds it for an instant only. One that was stopped in that instant must not stop us too.
flock -s -w 10 9 || exec "$@" 9<&-
now=$(sed 's/.*\[\(.*\)\].*/\1/' "$setting")
if [ "$now" != always ]; then
    # First, so that the value is known whenever it has been changed.
    echo "$now" >"$before"
    # A container has the file, and may not write it.
    echo always 2>/dev/null >"$setting" || rm -f "$before"
fi

restore() {
    if [ -f "$before" ] && flock -n -x 9; then
        cat "$before" >"$setting" && rm -f "$before"
    fi
}
trap restore EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# What the command starts and leaves running must not keep the lock.
status=0
"$@" 9<&- || status=$?
exit "$status"
