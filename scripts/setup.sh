#!/bin/sh
# Install requirements-dev.lock into .venv and check every hash. Returns immediately if this is already done.
# Uses uv if it is on the PATH, otherwise python3 -m venv and pip. PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/.."

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

python=
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
    if is_new_enough "$candidate"; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || fail "Python 3.11 or newer is needed and was not found. On Debian or Ubuntu:" \
    "    apt-get install python3 python3-venv" \
    "Or name an interpreter: make PYTHON=/path/to/python3.12 ..."

# The stamp is written last. It names the interpreter, folder and lock file of a complete .venv.
stamp=.venv/complete
made_of=$("$python" -c 'import sys; print(sys.version.split()[0], sys.argv[1])' "$PWD")
lock=$("$python" -c 'import hashlib; print(hashlib.sha256(open("requirements-dev.lock", "rb").read()).hexdigest())')
if [ -f $stamp ] && [ "$(cat $stamp)" = "$made_of $lock" ] && is_new_enough .venv/bin/python; then
    exit 0
fi

case $(cat $stamp 2>/dev/null || true) in
"$made_of "*) echo "Updating .venv to requirements-dev.lock" ;;
*)
    echo "Installing requirements-dev.lock into .venv: about a minute the first time"
    rm -rf .venv
    ;;
esac
rm -f $stamp

with_uv() {
    command -v uv >/dev/null || return 1
    { [ -d .venv ] || uv venv --quiet --python "$python" .venv; } &&
        uv pip install --quiet --python .venv/bin/python --require-hashes -r requirements-dev.lock && return 0
    # NOTE: uv does not read pip's settings. If only those name the package index, pip has to install the packages.
    echo "uv could not install the packages; trying pip"
    rm -rf .venv
    return 1
}

with_pip() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null || fail \
        "$python has no venv and ensurepip, which Debian and Ubuntu ship in a separate package. Install it with:" \
        "    apt-get install $("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    # Even if .venv exists: uv creates it without pip.
    "$python" -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes \
        -r requirements-dev.lock || fail "" \
        "The packages could not be installed; the lines above say why. They come from a Python package index." \
        "- Behind a proxy, set HTTPS_PROXY=http://proxy:port." \
        "- For another index or a mirror, set PIP_INDEX_URL=https://index/simple (uv: UV_DEFAULT_INDEX)," \
        "  and for a private certificate authority PIP_CERT=/path/ca.pem (uv: SSL_CERT_FILE)." \
        "Then run the same command again."
}

with_uv || with_pip
printf '%s\n' "$made_of $lock" >$stamp
