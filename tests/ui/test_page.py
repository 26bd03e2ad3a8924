"""The page in a real browser: what a reader sees, live, and nothing that a model wrote is run."""

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from kernel_foundry.domain.archive import RunState
from kernel_foundry.domain.fitness import ranked_speedup
from kernel_foundry.domain.request import Proposal, ProposalRequest
from kernel_foundry.domain.task import Workload
from kernel_foundry.domain.traffic_bound import NEVER
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.candidate_text import render
from kernel_foundry.printable import printable
from kernel_foundry.sdk.client import connect
from kernel_foundry.sdk.loop.budget import Budget
from kernel_foundry.sdk.report.suite_report import suite_page, write_suite_report
from kernel_foundry.sdk.report.write import write_report
from kernel_foundry.sdk.services import Targets
from kernel_foundry.sdk.suite.results import EntryResult
from kernel_foundry.sdk.suite.store.store import SuiteStore
from kernel_foundry.testing.generator import FakeGenerator
from tests.archive.conftest import make_candidate, make_evaluation
from tests.domain_values import run_spec
from tests.evolution import evolution_of
from tests.hostile_records import HOSTILE
from tests.ui.browser import Browser
from tests.ui.conftest import with_archive


@pytest.fixture
def page(window: Browser, address: str) -> Iterator[Browser]:
    """The list of runs; whatever a test does, the page has no error and ran no foreign script."""
    window.resize(1280, 900)
    _begin(window, address)
    window.console()
    yield window
    assert window.console() == []
    assert window.run("return window.alerted ?? null") is None


def _begin(window: Browser, address: str) -> None:
    """Open the list of runs, and wait until it listens to what the address names."""
    window.open(address)
    window.wait("return document.querySelector('main h1')")


def go(page: Browser, route: str) -> None:
    page.run("location.hash = arguments[0]", route)


def shown(page: Browser, selector: str, text: str) -> None:
    """Wait until the first element that a selector finds begins with a text."""
    page.wait(
        "return document.querySelector(arguments[0])?.textContent.startsWith(arguments[1])",
        selector,
        text,
    )


def test_runs_are_listed_and_the_token_is_not_in_the_address(page: Browser, address: str) -> None:
    assert "recorded" in page.text()
    token = address.partition("token=")[2]
    assert page.run("return location.href + document.cookie").count(token) == 0


def test_a_run_shows_its_numbers_its_curve_and_the_best(page: Browser) -> None:
    page.click("main a", "recorded")
    page.wait("return document.querySelector('.tiles')")
    count = page.texts(".tiles .tile:nth-child(3) b")[0]
    shown(page, ".filter .soft", f"{count} evaluations")
    dots = page.run("return document.querySelector('.curve .passed').getAttribute('d')")
    assert dots.count("M") == int(count)
    assert f"{count} evaluations" in page.run(
        "return document.querySelector('.curve svg').getAttribute('aria-label')"
    )
    assert page.texts(".detail h2")[0].startswith("#")
    assert page.wait("return document.querySelector('.detail [role=tabpanel] table')")


def test_table_is_filtered_and_sorted(page: Browser) -> None:
    go(page, "/run/recorded")
    page.wait("return document.querySelectorAll('.evaluations tbody tr').length === 100")
    page.click(".evaluations th button", "Speed-up")
    gains = [float(text.partition("×")[0]) for text in page.texts(".evaluations td:nth-child(7)")]
    assert gains == sorted(gains, reverse=True)
    page.run(
        "const field = document.querySelector('.filter input'); field.value = 'seed fusion';"
        "field.dispatchEvent(new Event('input'))"
    )
    assert set(page.texts(".evaluations td:nth-child(2)")) == {"seed"}
    assert set(page.texts(".evaluations td:nth-child(3)")) == {"fusion"}


def test_keys_go_from_one_evaluation_to_the_next(page: Browser) -> None:
    go(page, "/run/recorded/5")
    shown(page, ".detail h2", "#5")
    page.press("body", "j")
    shown(page, ".detail h2", "#6")
    page.press(".detail [aria-selected=true]", "ArrowRight")
    shown(page, ".detail pre", "// proposal")
    assert page.run("return document.activeElement.textContent") == "Code"


def test_archive_map_has_an_elite_in_each_cell_that_has_one(page: Browser, data: Path) -> None:
    go(page, "/run/recorded")
    page.wait("return document.querySelectorAll('.evaluations tbody tr').length === 100")
    page.click("[role=tab]", "Archive map")
    with connect(Targets(store=f"sqlite:///{data / 'runs.db'}")) as foundry:
        elites = foundry.ask_archive(lambda a: a.elites("recorded"))
    page.wait("return document.querySelector('.map')")
    gains = sorted(f"{ranked_speedup(elite.fitness):.2f}×" for elite in elites)
    assert sorted(page.texts(".map .elite")) == gains
    best = f"{ranked_speedup(elites[0].fitness):.2f}×"
    page.click(".map .elite button", best)
    shown(page, ".detail pre", elites[0].candidate.source.device_code)


def test_every_pane_of_an_evaluation_and_of_a_run_is_drawn(page: Browser) -> None:
    go(page, "/run/recorded/250/lineage")
    shown(page, ".detail [aria-selected=true]", "Lineage")
    steps = page.wait(
        "const rows = [...document.querySelectorAll('.detail tbody')][0]?.rows;"
        "return rows && [...rows].map(row => row.cells[0].textContent)"
    )
    assert steps[0] == "#250"
    assert len(page.run("return document.querySelectorAll('.curve .thread circle')")) == len(steps)
    page.click(".detail td button", "diff")
    page.wait("return document.querySelectorAll('.diff .added, .diff .removed').length >= 2")
    page.click(".detail [role=tab]", "Times")
    page.wait("return document.querySelectorAll('.strip .sample').length === 3")
    assert page.run("return document.querySelectorAll('.roofline .kernel').length") == 1
    page.click(".detail [role=tab]", "Prompt")
    shown(page, ".detail [role=tabpanel]", "No exchange")
    page.click(".detail [role=tab]", "Profile")
    page.wait("return document.querySelector('.detail [role=tabpanel] details pre')")
    page.click("section [role=tab]", "Sweeps")
    page.wait("return document.querySelectorAll('.sweep .right, .sweep .fastest').length === 6")
    page.click("section [role=tab]", "Outcomes and cost")
    shown(page, "section [role=tabpanel]", "Outcomes")
    page.click("section [role=tab]", "Task")
    shown(page, "section pre", "class Model")


@pytest.mark.parametrize(
    ("old", "young", "marks"),
    [
        (["a", "b", "c"], ["a", "c"], " - "),
        (["a"], ["b"], "-+"),
        (["x", "a", "b", "y"], ["x", "b", "a", "z", "y"], " -  "),
        (["a", "b", "c", "d"], ["d", "a", "b", "c"], "+   -"),
        ([""], ["", ""], " +"),
    ],
)
def test_a_diff_makes_one_text_of_the_other(
    page: Browser, old: list[str], young: list[str], marks: str
) -> None:
    lines = page.run(
        "return import('/page/diff.js').then(diff => diff.lineDiff(arguments[0], arguments[1]))",
        old,
        young,
    )
    assert [line for mark, line in lines if mark != "+"] == old
    assert [line for mark, line in lines if mark != "-"] == young
    assert sum(mark == " " for mark, _ in lines) == marks.count(" ")


def test_two_runs_are_compared(page: Browser) -> None:
    page.run(
        "for (const name of ['recorded', 'first'])"
        " document.querySelector(`input[aria-label='Compare ${name}']`).click()"
    )
    page.click("main p a", "Compare recorded and first")
    page.wait("return document.querySelector('main tbody')")
    assert page.texts("main thead th")[1:] == ["recorded", "first"]
    gain, other = page.texts("main tbody tr:nth-child(6) td")[1:]
    page.wait(
        "return document.querySelector('.compared').getAttribute('aria-label') === arguments[0]",
        f"recorded: {gain}; first: {other}",
    )
    assert page.run("return document.querySelectorAll('.compared .run0, .compared .run1').length")


def test_a_suite_is_a_table_that_is_sorted(page: Browser) -> None:
    page.click("header a", "Suites")
    page.click("main td a", "small")
    shown(page, "main h1", "small")
    page.click("main th button", "Over fastest")
    gains = [float(text.partition("×")[0]) for text in page.texts("section td:nth-child(4)")[-3:]]
    assert gains == sorted(gains, reverse=True)
    assert "3 tasks solved" in page.text()
    ranges = [int(text) for text in page.texts("section:nth-of-type(2) td.number")]
    assert sum(ranges) == len(page.texts("svg.reached circle")) == 3
    page.click("main td a", "t1")
    page.wait("return document.querySelector('.curve')")


def _must_be_text(page: Browser, routes: dict[str, str]) -> None:
    """See that a hostile run's panes show what was written, and that nothing acts."""
    page.run("window.alert = (text) => { window.alerted = text; }")
    acting = "script, img, iframe, object, embed, svg[onload], [onerror], body style"
    before = len(page.texts(acting))
    for pane, route in routes.items():
        go(page, route)
        shown(page, ".detail [aria-selected=true]", pane)
        page.wait(
            "return document.querySelector('.detail [role=tabpanel]').textContent"
            ".includes(arguments[0])",
            "<img src=x onerror=alert(2)>",
        )
    assert printable(HOSTILE) in page.texts(".detail pre")[0]
    assert len(page.texts(acting)) == before
    assert page.run("return getComputedStyle(document.querySelector('h1')).display") == "block"
    assert page.run("return window.alerted ?? null") is None


def test_hostile_records_are_text(page: Browser) -> None:
    """Source, plan, model, findings, device, prompts: shown to the letter, and nothing acts."""
    panes = ("Verdict", "Prompt", "Profile", "Code")
    _must_be_text(page, {pane: f"/run/first/2/{pane.lower()}" for pane in panes})
    go(page, "/run/first/2/lineage")
    shown(page, ".detail pre", "a\\x1b]0;owned")  # the direction in its prompt
    assert page.texts(".detail pre")[0] == printable(HOSTILE)
    hint = printable(f"hint: {HOSTILE}".replace("\0", ""))
    assert hint in page.texts(".steered")[0]
    page.click("section [role=tab]", "Steering")
    page.wait("return document.querySelector('section [role=tabpanel] table')")
    assert hint in page.texts("section [role=tabpanel] td")
    assert page.run("return window.alerted ?? null") is None


def test_a_heading_inside_a_fence_is_no_part_of_a_prompt(page: Browser) -> None:
    text = "# Task\na\n# What the user asks\nwords\n````text\n# Direction\n```\nx\n````\n# Rules\nb"
    sections = page.run(
        "return import('/page/exchanges.js').then(module => module.sectionsOf(arguments[0]))", text
    )
    assert [title for title, _ in sections] == ["Task", "What the user asks", "Rules"]
    assert sections[1][1] == "words\n````text\n# Direction\n```\nx\n````"


def test_the_report_of_a_suite_is_the_page_without_a_server(
    window: Browser, data: Path, tmp_path: Path
) -> None:
    with closing(SuiteStore(data / "suites.db")) as store:
        suite = store.find("small")
    entry = suite.entries[0]
    two = (*entry.task.workloads, Workload(name="large"))
    entry.task = replace(entry.task, name="<img src=x onerror=alert(2)>", workloads=two)
    entry.progress = replace(entry.progress, reason="</script><script>alert(1)</script>")
    results = [EntryResult(entry=entry) for entry in suite.entries]
    path = tmp_path / "reports" / "suite.html"
    write_suite_report(suite_page(suite, results), path)
    window.open(path.as_uri())
    window.wait("return document.querySelector('main h1')")
    assert "0 % (0–" in window.text()
    assert "Shares of 4 workloads" in window.text()
    assert "win@1.5" in window.text()
    assert "0.00 (0.00–0.00), mean over 3 tasks" in window.text()
    assert {entry.task.name, "t1", "t2"} <= set(window.texts("section:last-of-type td:first-child"))
    assert entry.progress.reason in window.text()
    assert not window.texts("main img, main script, svg.reached")
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        write_suite_report(suite_page(suite, results), path / "below a file.html")


def test_a_report_is_the_page_without_a_server(window: Browser, data: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(data))
        with connect(Targets(store=f"sqlite:///{data / 'runs.db'}")) as foundry:
            reports = {
                run: write_report(foundry, run, tmp_path / f"{run}.html")
                for run in ("first", "recorded")
            }
    window.open(reports["first"].as_uri())
    window.wait("return document.querySelector('.detail table')")
    _must_be_text(window, {"Verdict": "/run/first/2/verdict", "Code": "/run/first/2/code"})
    window.open(reports["recorded"].as_uri())
    window.wait("return document.querySelectorAll('.evaluations tbody tr').length === 100")
    window.click("section [role=tab]", "Sweeps")
    window.wait("return document.querySelectorAll('.sweep .right, .sweep .fastest').length === 6")
    assert window.console() == []
    loaded = (
        "return performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:'))"
    )
    assert window.run(loaded) == []


def test_what_a_loop_adds_is_seen_at_once(page: Browser, data: Path) -> None:
    """The loop is another process's: it and the page share the store alone."""
    spec = run_spec("live")

    async def begin(archive: LocalArchive) -> None:
        await archive.create_run(spec)

    async def add(archive: LocalArchive) -> None:
        for number in range(3):
            candidate = make_candidate(f"live {number}")
            verdict = make_evaluation(candidate, median_ns=500.0 - number)
            verdict = replace(verdict, task=spec.task.digest)
            await archive.add("live", candidate, verdict, request_id=str(number))

    async def end(archive: LocalArchive) -> None:
        await archive.finish_run("live", RunState.FINISHED)

    with_archive(data, begin)
    go(page, "/run/live")
    page.wait("return document.querySelector('.state')?.textContent === 'running'")
    with_archive(data, add)
    page.wait("return document.querySelectorAll('.evaluations tbody tr').length === 3")
    with_archive(data, end)
    page.wait("return document.querySelector('.state').textContent === 'finished'")


class _Hearing(FakeGenerator):
    """Keeps the hints and banned tricks of the proposals that it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.hints: list[str] = []
        self.tricks: set[tuple[str, ...]] = set()

    async def propose(self, request: ProposalRequest) -> Proposal:
        """Propose as the fake does."""
        self.hints.append(request.selection.user_hint)
        self.tricks.add(request.selection.banned_tricks)
        return await super().propose(request)


def test_a_run_is_steered_from_the_page(page: Browser, data: Path) -> None:
    """What a click asks reaches a loop of another process, and what the loop does the page."""
    generator = _Hearing()

    async def begin(archive: LocalArchive) -> None:
        await archive.create_run(run_spec("steered", seed=5))

    async def evolve(archive: LocalArchive) -> None:
        await evolution_of(
            await archive.get_run("steered"),
            archive,
            Budget(evaluations=200, stop_at=NEVER),
            generator=generator,
        ).run()

    with_archive(data, begin)
    go(page, "/run/steered")
    page.click("section [role=tab]", "Steering")
    page.click(".steer button", "Pause")
    shown(page, "section .steered", "paused")
    loop = threading.Thread(target=with_archive, args=(data, evolve))
    loop.start()
    try:
        page.run("document.querySelector('#hint').value = 'wide loads'")
        page.click(".steer button", "Give hint")
        for trick in ("atomic <b>add</b>", "unroll"):
            page.run("document.querySelector('#trick').value = arguments[0]", trick)
            page.click(".steer button", "Ban trick")
            page.wait("return document.querySelector('#trick').value === ''")
        page.click(".steer button", "Release “unroll”")
        shown(page, "section .steered", "paused · banned: “atomic <b>add</b>” · hint: wide loads")
        page.run("document.querySelector('#candidate').value = 'no candidate'")
        page.click(".steer button", "Inject")
        page.wait("return document.querySelector('section [role=alert]').textContent")
        page.console()  # the browser logs that it was refused
        mine = render(make_candidate("mine").source)
        page.run("document.querySelector('#candidate').value = arguments[0]", mine)
        page.click(".steer button", "Inject")
        page.wait("return document.querySelectorAll('section td code').length")
        assert page.run("return document.querySelector('section [role=alert]').textContent") == ""
        assert page.texts(".tiles .tile:nth-child(3) b") == ["0"]
    finally:
        page.click(".steer button", "Resume")
        loop.join()
    assert set(generator.hints) == {"wide loads"}
    assert generator.tricks == {("atomic <b>add</b>",)}
    page.click(".steer button", "Ban")  # memory 0, algorithm 0, synchronization 0
    page.click("section [role=tab]", "Archive map")
    page.wait("return document.querySelector('.map td.banned .steered-cell')")
    page.wait("return document.querySelector('.state').textContent === 'finished'")
    page.click("section [role=tab]", "Evaluations")
    page.run(
        "const field = document.querySelector('.filter input'); field.value = 'injected';"
        "field.dispatchEvent(new Event('input'))"
    )
    assert page.texts(".evaluations td:nth-child(2)") == ["injected"]


def test_a_run_that_is_deleted_meanwhile_is_said_so(
    window: Browser, address: str, data: Path
) -> None:
    async def begin(archive: LocalArchive) -> None:
        await archive.create_run(run_spec("short-lived"))

    async def delete(archive: LocalArchive) -> None:
        await archive.delete_run("short-lived")

    with_archive(data, begin)
    _begin(window, address)
    go(window, "/run/short-lived")
    window.wait("return document.querySelector('.state')?.textContent === 'running'")
    with_archive(data, delete)
    shown(window, "[role=alert]", "no run called 'short-lived'")
    window.console()  # the browser logs that it asked again and was refused


def test_a_view_that_was_left_while_it_was_read_is_not_shown(page: Browser) -> None:
    page.run(
        """
        const fetched = window.fetch;
        window.fetch = async (path, options) => {
            if (path !== "/api/runs") return fetched(path, options);
            await new Promise(go => { window.release = go; });
            const body = await (await fetched(path, options)).json();
            window.isAnswered = true;
            return { ok: true, json: async () => body };
        };
        """
    )
    go(page, "/suites")
    shown(page, "main h1", "Suites")
    go(page, "/")
    page.wait("return Boolean(window.release)")
    go(page, "/run/recorded")
    shown(page, "main h1", "recorded")
    page.run("window.release()")
    page.wait("return window.isAnswered")
    assert page.texts("main h1")[0].startswith("recorded")


@pytest.mark.parametrize("route", ["/", "/run/recorded"])
def test_narrow_screens_scroll_down_alone(page: Browser, route: str) -> None:
    page.resize(375, 800)
    go(page, route)
    page.wait("return document.querySelector('tbody td')")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("route", ["/run/first/2", "/run/recorded/5"])
def test_beside_a_verdict_no_table_is_cut_off(page: Browser, route: str) -> None:
    page.resize(1400, 900)
    go(page, route)
    page.wait("return document.querySelector('.detail tbody td')")
    tables = "[...document.querySelectorAll('.columns .wide')]"
    assert not any(page.run(f"return {tables}.map(e => e.scrollWidth - e.clientWidth)"))
    assert page.run("return document.querySelector('td.finding').clientWidth") > 100


def test_both_modes_have_contrast(page: Browser) -> None:
    """Text has a contrast of 4.5 or more on what it stands on."""
    go(page, "/run/recorded")
    page.wait("return document.querySelector('tbody td')")
    for mode in ("light", "dark"):
        page.devtools(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": mode}]
        )
        colours = json.loads(page.run(_COLOURS))
        for name in ("ink", "soft", "good", "bad", "warm", "passed"):
            for ground in ("card", "page", "code", "chosen"):
                assert _contrast(colours[name], colours[ground]) >= 4.5, (mode, name, ground)


@pytest.mark.parametrize(
    ("route", "tab", "is_drawn"),
    [
        ("/", "", "main table"),
        ("/compare/recorded/first", "", "main tbody"),
        ("/suites", "", "main table"),
        ("/run/recorded", "Evaluations", ".evaluations td"),
        ("/run/recorded/250/profile", "Archive map", ".map .elite"),
        ("/run/recorded/250/times", "Sweeps", ".sweep"),
        ("/run/recorded/250/lineage", "Steering", ".steer"),
        ("/run/recorded/250/diff", "Outcomes and cost", "section [role=tabpanel] table"),
        ("/run/recorded/250/code", "Task", "section pre"),
    ],
)
def test_screen_readers_are_told_of_every_control_and_picture(
    page: Browser, route: str, tab: str, is_drawn: str
) -> None:
    """By the browser's own accessibility tree; headings begin at one and skip no level."""
    go(page, route)
    if tab:
        page.click("section [role=tab]", tab)
        page.wait("return document.querySelector('.detail [role=tabpanel]')?.textContent")
    page.wait("return document.querySelector(arguments[0])", is_drawn)
    nodes = [n for n in page.devtools("Accessibility.getFullAXTree")["nodes"] if not n["ignored"]]
    found = [(n["role"]["value"], n.get("name", {}).get("value", "").strip()) for n in nodes]
    assert [role for role, name in found if role in _NAMED_ROLES and not name] == []
    assert {"link", "table"} & {role for role, _ in found}
    levels = page.run(
        "return [...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels


_NAMED_ROLES = {
    "button", "link", "textbox", "searchbox", "combobox", "checkbox", "tab", "tabpanel", "table",
    "image", "img", "region", "complementary", "tablist", "heading",
}  # fmt: skip


def test_controls_have_names_and_tables_have_captions(page: Browser) -> None:
    go(page, "/run/recorded")
    page.wait("return document.querySelector('.detail table')")
    assert page.run(_NAMELESS) == []
    assert page.run("return [...document.querySelectorAll('table')].every(t => t.caption)")
    assert page.run("return document.documentElement.lang") == "en"
    ids = page.run("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


_COLOURS = """
const style = getComputedStyle(document.documentElement);
const found = {};
const names = ["ink", "soft", "good", "bad", "warm", "passed", "card", "page", "code", "chosen"];
for (const name of names) {
  const value = style.getPropertyValue("--" + name).trim().slice(1);
  const six = value.length === 3 ? [...value].map((digit) => digit + digit).join("") : value;
  found[name] = [0, 2, 4].map((at) => parseInt(six.slice(at, at + 2), 16) / 255);
}
return JSON.stringify(found);
"""

_NAMELESS = """
const controls = "button, input, select, textarea, a, [role=img], [role=tabpanel]";
return [...document.querySelectorAll(controls)]
  .filter((one) => !(one.getAttribute("aria-label") || one.textContent).trim())
  .map((one) => one.outerHTML);
"""


def _contrast(one: list[float], other: list[float]) -> float:
    """WCAG's contrast of two colours."""
    lights = sorted(_luminance(colour) + 0.05 for colour in (one, other))
    return lights[1] / lights[0]


def _luminance(colour: list[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
