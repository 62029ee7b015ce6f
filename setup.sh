#!/usr/bin/env bash
# Set up the virtual environments; with root and apt also Mininet. Idempotent; says what it does and
# what it leaves out. Versions and hashes come from requirements/*.lock (`make lock` writes them anew).
#   setup.sh                  everything: `run`, then `tools`
#   setup.sh run              .venv with what runs Ofan
#   setup.sh kernels          the simulator's kernels, compiled (`make demo` shows its table before)
#   setup.sh tools            what tests, checks and documents it, too, and p4runtime-shell in .venv-shell
#   setup.sh shell            p4runtime-shell alone
#   setup.sh can-mininet      succeed if root and Mininet are here
#   setup.sh why-not-mininet  say what is missing
set -euo pipefail
cd "$(dirname "$0")"
PY=${PY:-$(command -v /usr/bin/python3 || command -v python3)}

say() { printf 'setup: %s\n' "$*" >&2; }
root() { [ "$(id -u)" = 0 ]; }
apt_can() { root && command -v apt-get >/dev/null; }
SYSTEM_PY=/usr/bin/python3
has_mininet() { "$PY" -c 'import mininet.net' 2>/dev/null && command -v mnexec >/dev/null; }

quietly() {  # run a command that says something only if it fails
    local said
    said=$("$@" 2>&1) && return
    printf '%s\n' "$said" >&2
    return 1
}

watched() {  # run a long command; say every ten seconds what it does
    local log began=$SECONDS pid
    log=$(mktemp)
    "$@" >"$log" 2>&1 &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        sleep 1
        (( (SECONDS - began) % 10 == 9 )) || continue
        # What pip does, not what it grumbles about; all that it installs is a line of thousands.
        say "  after $((SECONDS - began)) s: $(grep -E '^ *(Collecting|Downloading|Building|Installing)' "$log" | tail -n 1 | sed 's/^Installing collected packages.*/installing what was downloaded/' | cut -c 1-70)"
    done
    wait "$pid" && rm "$log" && return
    cat "$log" >&2
    rm "$log"
    return 1
}

no_mininet() {  # why, and what works
    if [ "$PY" -ef "$SYSTEM_PY" ] || ! "$SYSTEM_PY" -c 'import mininet.net' 2>/dev/null; then
        say "no Mininet for $PY: real packets (--network mininet) are left out, everything else works (Debian/Ubuntu: apt install mininet)"
    else
        say "Mininet is the system's, for $SYSTEM_PY, which $PY does not see: real packets (--network mininet) are left out, everything else works. \`make clean; make setup PY=$SYSTEM_PY\` has both"
    fi
}

apt_install() {
    say "apt-get install $*"
    DEBIAN_FRONTEND=noninteractive apt-get -qq update >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}

make_venv() {  # a venv that sees the system's Mininet
    [ -x "$1/bin/pip" ] && return
    say "making $1 with $("$PY" --version)"
    "$PY" -m venv "$2" "$1" 2>/dev/null && return
    apt_can || { say "python3-venv is missing: install it (Debian/Ubuntu: apt install python3-venv)"; exit 1; }
    apt_install python3-venv
    "$PY" -m venv --clear "$2" "$1"
}

locked() {  # install what a lock file names, bit for bit
    watched "$1/bin/pip" install --disable-pip-version-check --progress-bar off --require-hashes -r "$2"
}

install_shell() {  # p4runtime-shell pins old libraries, so it lives apart
    make_venv .venv-shell --copies
    say "installing p4runtime-shell into .venv-shell"
    locked .venv-shell requirements/shell.lock
    # `ofan shell` and `ofan doctor` run this one, wherever they are called.
    if [ -d .venv ]; then printf '%s\n' "$PWD/.venv-shell/bin/python" >.venv/ofan-shell; fi
}

install_run() {
    if [ -z "$PY" ]; then
        apt_can || { say "Python >= 3.10 is missing"; exit 1; }
        apt_install python3 python3-venv
        PY=/usr/bin/python3
    fi
    "$PY" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { say "Python >= 3.10 is needed, $PY is older"; exit 1; }
    [ -x .venv/bin/ofan ] || say "this takes two or three minutes and 700 MB in .venv"
    if ! has_mininet && apt_can; then apt_install mininet iproute2 ethtool || say "apt could not install Mininet"; fi
    has_mininet || no_mininet
    make_venv .venv --system-site-packages
    say "installing Python packages into .venv"
    locked .venv requirements/run.lock
    # All that the kernels need is there: they compile beside the rest.
    compile_for_programs & programs=$!
    # --no-build-isolation: setuptools is locked too, and nothing else builds us.
    # Two installations: an older one of Ofan, which goes first, had a `softswitch` of its own.
    for folder in . p4tools; do
        quietly .venv/bin/pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e "$folder"
    done
    # With sudo these are root: their Python looks for modules here, and nowhere that others can write.
    sed -i '1s|^#!\(/[^ ]*python[^ ]*\)$|#!\1 -I|' .venv/bin/{ofan,ofan-p4,softswitch}
    rm -f .venv/.ready-* .venv/.installed-*
    # The demo needs the kernels around programs alone.
    [ "${GOALS:-}" = demo ] || compile_for_simulator
    wait $programs || later
    say "done: .venv/bin/ofan, .venv/bin/ofan-p4, .venv/bin/softswitch"
    [ "${GOALS:-}" = demo ] || say "next: source .venv/bin/activate; ofan demo (ofan doctor: what this machine can run)"
}

# The first run would wait for it. Kernels say themselves how long they take.
compile_for_programs() {
    .venv/bin/python -I -c 'import os, sys; here = os.getcwd(); sys.path[:0] = [here, here + "/p4tools"]; from emulation.virtual import simulated; simulated.prepare()'
}
compile_for_simulator() { .venv/bin/python -I -c 'from sim import prepare; prepare()' || later; }
later() { say "the kernels could not be compiled now: the first run does"; }

install_tools() {
    say "installing what tests, checks and documents it (400 MB on disk, a minute or so)"
    locked .venv requirements/all.lock
    rm -f .venv/ofan-shell
    install_shell || say "p4runtime-shell could not be installed: \`ofan shell\` is left out, everything else works"
}

case "${1:-all}" in
    all) install_run; install_tools ;;
    run) install_run ;;
    kernels) compile_for_simulator ;;
    tools) install_tools ;;
    shell) install_shell ;;
    can-mininet) root && has_mininet ;;
    why-not-mininet)
        if ! root; then say "no root: the Mininet tests are left out"; exit 0; fi
        if ! has_mininet; then no_mininet; exit 0; fi
        exit 1
        ;;
    *) say "unknown: $1"; exit 2 ;;
esac
