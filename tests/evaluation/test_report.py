import re
import shutil
from html.parser import HTMLParser

import pytest

from toolverse_jax.errors import ToolverseError
from toolverse_jax.evaluation import write_result
from toolverse_jax.evaluation.report import render_report, write_report

_VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Checks that elements nest, and collects what a test asks for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"elements {self.open} stay open"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def sections(self) -> list[str | None]:
        return [attributes["id"] for attributes in self.attributes("h2")]


@pytest.fixture(scope="module")
def html(whole_run) -> str:
    return render_report(whole_run)


@pytest.fixture(scope="module")
def page(html) -> Page:
    return Page(html)


def test_the_report_of_a_whole_run_has_all_sections_in_order(page):
    assert page.sections == ["comparison", "training", "graph", "trajectories", "settings"]
    assert [link["href"] for link in page.attributes("a")] == [f"#{name}" for name in page.sections]


def test_the_comparison_holds_the_figures_of_the_results(page):
    # Trace score: before (0,0,0,0), after (1,0,1,0). Turn accuracy: before mean(.5,0,1/3,0) = 0.208,
    # after mean(1,.5,1,.5) = 0.75.
    row = r"Trace score 0\.000 0\.000 to 0\.000 0\.500 [\d.]+ to [\d.]+ \+0\.500"
    assert len(re.findall(row, page.text)) == 2
    assert len(re.findall(r"Turn accuracy 0\.208 \S+ to \S+ 0\.750 \S+ to \S+ \+0\.542", page.text)) == 2
    assert "Held-out tasks 4 tasks in 2 environments" in page.text
    assert "Held-out environments 4 tasks in 2 environments" in page.text


def test_held_out_environments_are_resampled_by_environment(whole_run, tmp_path, result_of):
    # All of the variance is between the two environments: fixed environments leave none.
    scores = result_of("x", [(1, 1), (1, 1), (0, 0), (0, 0)])
    for name in ("heldout_tasks", "heldout_environments"):
        write_result(tmp_path / "eval" / f"after_{name}.json", scores)
    text = Page(render_report(tmp_path)).text
    assert "Trace score – 0.500 0.500 to 0.500 –" in text
    assert "Trace score – 0.500 0.000 to 1.000 –" in text


def test_the_curves_show_what_was_logged_and_no_series_without_a_value(page):
    labels = [svg["aria-label"] for svg in page.attributes("svg")]
    titles = [label.split(":")[0] for label in labels if label]
    assert titles[4:8] == ["Reward", "Reward by turn", "Tool calls", "Tool dependency graph of marina_berths"]
    assert "trace score, 3: 0.375" in page.text
    assert "turn 2, 3: 0.2" in page.text
    assert "tool errors, 1: 1.5" in page.text
    assert "Entropy" not in page.text


def test_the_graph_is_that_of_the_first_trajectory(page):
    assert "Tool dependency graph of marina_berths" in page.text
    assert "list_berths" in page.text


def test_three_rollouts_of_three_tasks_are_shown_and_the_first_is_open(page):
    cards = [card for card in page.attributes("details") if card.get("class") == "card"]
    assert ["open" in card for card in cards] == [True, False, False, False]  # The last one: settings.
    for title, task in (("All 2 turns right", 0), ("1 of 2 turns right", 1), ("None of 2 turns right", 2)):
        assert re.search(rf"{title} .{{0,40}}marina_berths · task marina_berths/7/{task} ·", page.text)


def test_a_trajectory_shows_rewards_advantages_and_golden_calls(page):
    assert "reward 1 group mean 0.50 advantage +1.25" in page.text
    assert "reward 0 group mean 0.00 advantage \u22120.75" in page.text
    assert "✓ get_berth(n=0)" in page.text
    assert "✕ get_berth(n=1)" in page.text


def test_only_text_of_the_policy_is_marked_and_shaded_by_its_advantage(html):
    pattern = r'<div class="message (\w+)">(?:(?!<div class="message).)*?<pre( style="[^"]*")?>\n(.*?)</pre>'
    messages = re.findall(pattern, html, re.DOTALL)
    assert {kind for kind, _, _ in messages} == {"system", "user", "policy", "tool", "error"}
    assert {kind for kind, style, _ in messages if style} == {"policy"}
    answers = [style for kind, style, text in messages if text.startswith("answer")]
    colours = [match.group() if (match := re.search("good|bad", style)) else "" for style in answers]
    # The advantages are 1.25 and 0, then 0.5 and -0.75, then 0 and 0.
    assert colours == ["good", "", "good", "bad", "", ""]
    assert "rgba(var(--good), 0.192)" in answers[0]  # 0.05 + 0.17 * 1.25 / 1.5


def test_output_of_tools_stays_text(html, page, hostile_output):
    assert hostile_output in page.text
    assert "<script" not in html and "<img" not in html
    assert not page.attributes("script")


def test_the_words_of_users_are_escaped(html):
    assert "Ask 0 &amp; wait" in html


def test_the_page_needs_no_network(html, page):
    assert not re.search(r"https?:|//[a-z]", html)
    assert not [tag for tag, attributes in page.tags if "src" in attributes or tag in ("link", "iframe")]
    assert "@import" not in html and "url(" not in html


def test_everything_that_opens_or_scrolls_can_be_reached_by_keyboard(html, page):
    regions = [a for tag, a in page.tags if "scroll" in (a.get("class") or "").split()]
    assert regions and all(region.get("tabindex") == "0" and region.get("aria-label") for region in regions)
    summaries = len(page.attributes("summary"))
    assert summaries == len(page.attributes("details")) and "summary:focus-visible" in html


def test_the_settings_are_those_of_the_run(page):
    assert "policy checkpoint tiny" in page.text
    assert "steps 100 minibatches 4" in page.text


def test_the_same_run_gives_the_same_bytes_and_only_the_report(copy_of_run, tmp_path):
    run = copy_of_run("train", "eval")
    for name in ("one.html", "two.html"):
        write_report(run, tmp_path / "out" / name)
    one, two = (tmp_path / "out" / name for name in ("one.html", "two.html"))
    assert one.read_bytes() == two.read_bytes()
    assert sorted(path.name for path in one.parent.iterdir()) == ["one.html", "two.html"]


@pytest.mark.parametrize(
    ("parts", "sections"),
    [
        (("eval",), ["comparison"]),
        (("envs",), ["graph"]),
        (("train",), ["training", "trajectories", "settings"]),
        (("train", "tasks"), ["training", "trajectories", "settings"]),
    ],
    ids=["eval", "envs", "train", "train_and_tasks"],
)
def test_what_is_absent_is_left_out(parts, sections, copy_of_run, monkeypatch):
    # The configured content folder is out of sight.
    monkeypatch.setattr("toolverse_jax.evaluation.report.content_root", _no_content)
    run = copy_of_run(*parts)
    monkeypatch.chdir(run)
    shown = Page(render_report(run)).sections
    expected = [name for name in sections if name != "settings" or "train" in parts]
    if "eval" in parts:
        expected.append("settings")
    assert shown == expected


def test_the_run_folder_of_training_alone_is_a_run(whole_run, copy_of_run, monkeypatch):
    monkeypatch.setattr("toolverse_jax.evaluation.report.content_root", _no_content)
    run = copy_of_run("train") / "train"
    monkeypatch.chdir(run)
    page = Page(render_report(run))
    assert page.sections == ["training", "trajectories", "settings"]
    assert "golden calls" not in page.text  # There is no task file.


def test_a_turn_that_was_never_reached_is_shown_as_such(tmp_path, samples, write_train_folder):
    write_train_folder(tmp_path, samples[5:])
    assert "Turn 2 not reached reward 0" in Page(render_report(tmp_path)).text


def test_the_last_saved_step_is_shown(tmp_path, samples, write_train_folder):
    write_train_folder(tmp_path, samples[:2], step=3)
    shutil.copy(
        tmp_path / "trajectories" / "step_000003.jsonl", tmp_path / "trajectories" / "step_000010.jsonl"
    )
    assert "Trajectories of step 10" in Page(render_report(tmp_path)).text


def test_a_cut_last_line_of_the_metrics_is_left_out(copy_of_run):
    run = copy_of_run("train")
    with (run / "train" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "reward/me')
    assert "turn reward, 3: 0.75" in Page(render_report(run)).text


def test_a_folder_with_nothing_to_report_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ToolverseError, match="holds nothing to report; give a folder with train/, eval/"):
        write_report(tmp_path, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_run_is_refused(tmp_path):
    with pytest.raises(ToolverseError, match=r"run folder .*nowhere does not exist"):
        write_report(tmp_path / "nowhere", tmp_path / "report.html")


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("train/config.json", "{"),
        ("train/config.json", "[1]"),
        ("train/metrics.jsonl", "nonsense\n"),
        ("train/metrics.jsonl", '{"no_step": 1}\n'),
        ("train/trajectories/step_000003.jsonl", "{\n"),
        ("train/trajectories/step_000003.jsonl", '{"task_id": "x"}\n'),
        ("eval/after_heldout_tasks.json", "{}"),
        ("tasks/train.jsonl", "{}\n"),
        ("envs/marina_berths/env.json", "{}"),
    ],
)
def test_a_damaged_file_is_named_in_one_sentence(file, damage, copy_of_run):
    run = copy_of_run("train", "eval", "tasks", "envs")
    (run / file).write_text(damage)
    with pytest.raises(ToolverseError) as caught:
        write_report(run, run / "report.html")
    assert file.split("/")[-1] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (run / "report.html").exists()


def test_a_trajectory_of_another_form_is_named_in_one_sentence(copy_of_run):
    run = copy_of_run("train")
    path = run / "train" / "trajectories" / "step_000003.jsonl"
    path.write_text(path.read_text().replace('"spans": [', '"spans": [7, '))
    with pytest.raises(ToolverseError, match=r"step_000003\.jsonl is not a trajectory file of this release"):
        render_report(run)


def test_a_report_that_cannot_be_written_says_so(copy_of_run):
    run = copy_of_run("eval")
    with pytest.raises(ToolverseError, match=r"cannot be written .*give another --out"):
        write_report(run, run / "eval")
    assert sorted(path.name for path in run.iterdir()) == ["eval"]


def _no_content():
    raise ToolverseError("there is none")
