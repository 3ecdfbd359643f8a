# Every target does its own set-up: it finds Python 3.12+, makes .venv, installs and runs.
.DEFAULT_GOAL := help
.PHONY: help quickstart test check format tiny-policy environments clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

quickstart:  ## the main job on this machine's CPU: toolsets -> tasks -> training -> report (under 12 minutes on 2 cores)
	@launch/setup.sh
	@launch/quickstart.sh

test:  ## all tests (under 5 minutes on 2 cores)
	@launch/setup.sh dev
	@.venv/bin/python -m pytest

check:  ## format check, lint and type check
	@launch/setup.sh dev
	@.venv/bin/ruff format --check .
	@.venv/bin/ruff check .
	@.venv/bin/pyright

format:  ## rewrite the sources in the project's format
	@launch/setup.sh dev
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .

environments:  ## author, validate and export envs/ again from their toolsets
	@launch/setup.sh
	@.venv/bin/toolverse synthesize envs --out envs

tiny-policy:  ## train the shipped tiny policy from nothing (about 20 minutes on 2 cores)
	@launch/setup.sh
	@launch/tiny_policy.sh

clean:  ## remove runs/ and the virtual environment
	rm -rf runs .venv
