#!/usr/bin/env bash
# Makes .venv with a Python of 3.12 or newer and installs the project into it.
#   launch/setup.sh [EXTRA]      EXTRA: dev (tests and linters), cuda, tpu; default: none
# Runs again only when pyproject.toml, the Python or the extra has changed. PYTHON=/path/to/python overrides the search.
set -euo pipefail
cd "$(dirname "$0")/.."
extra=${1:-}

runs_312() { # a shim may exist for a version that is not installed, so ask the interpreter itself
  "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

find_python() {
  local candidate
  if [ -n "${PYTHON:-}" ]; then
    runs_312 "$PYTHON" && { echo "$PYTHON"; return 0; }
    return 1
  fi
  for candidate in python3.12 python3.13 python3.14 python3 python \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[234]*/bin/python3 \
    /usr/local/bin/python3.1[234] /opt/homebrew/bin/python3.1[234]; do
    runs_312 "$candidate" && { echo "$candidate"; return 0; }
  done
  return 1
}

if ! python=$(find_python); then
  if [ -n "${PYTHON:-}" ]; then
    echo "setup: PYTHON=$PYTHON is not a working Python 3.12 or newer with the venv module; point PYTHON at one." >&2
  else
    echo "setup: no working Python 3.12 or newer with the venv module was found; install one (for example the packages python3.12 and python3.12-venv) or set PYTHON=/path/to/python3.12." >&2
  fi
  exit 1
fi

stamp_of() { # a stamp file is a list of what it stands for
  "$python" -c 'import hashlib, sys; print(sys.version.split()[0], hashlib.sha256(open("pyproject.toml", "rb").read()).hexdigest())'
}
wanted=$(stamp_of)
stamp=.venv/.installed-${extra:-base}
if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
  exit 0
fi

if ! { [ -x .venv/bin/python ] && runs_312 .venv/bin/python; }; then
  echo "setup: creating .venv with $("$python" --version)"
  rm -rf .venv
  "$python" -m venv .venv
fi
echo "setup: installing toolverse_jax${extra:+ with the extra '$extra'} (a few minutes the first time)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".${extra:+[$extra]}"
printf '%s\n' "$wanted" >"$stamp"
