"""Real crawled toolsets, the whole way from the public archive to replayed tasks."""

from pathlib import Path

import pytest

from toolverse_jax.environment import Environment
from toolverse_jax.gust.build import build_tasks
from toolverse_jax.gust.replay import replay
from toolverse_jax.synthesis.pipeline import synthesize
from toolverse_jax.synthesis.toucan import count, distinct_toolsets, read_archive

ARCHIVE = Path(__file__).resolve().parents[3] / "shared" / "data" / "toucan_mcp_servers.tar.xz"
WANTED = 5

needs_archive = pytest.mark.skipif(
    not ARCHIVE.is_file(),
    reason="the Toucan archive is not at ../shared/data; clone TheAgentArk/Toucan for it",
)


@needs_archive
def test_the_archive_holds_what_was_counted_by_hand():
    assert count(ARCHIVE) == {
        "servers": 2120,
        "tools": 17578,
        "distinct_toolsets": 1713,
        "toolsets_5_20": 682,
        "tools_5_20": 6635,
        "toolsets_5_20_real_schemas": 265,
    }


@needs_archive
def test_five_real_toolsets_go_the_whole_way_to_tasks():
    done = []
    for server in distinct_toolsets(read_archive(ARCHIVE)):
        if not server.real_schemas:
            continue
        synthesis = synthesize(server.to_toolset())
        if not synthesis.accepted:
            assert synthesis.reason, server.name
            continue
        environment = Environment(synthesis.spec)
        build = build_tasks(environment, count=3, seed=0, min_turns=3, max_turns=5)
        if not build.tasks:
            continue
        for task in build.tasks:
            assert replay(environment, task).ok, (server.name, task.id)
        done.append(server.name)
        if len(done) == WANTED:
            break
    assert len(done) == WANTED, done
