"""`masakari-ng doctor`: is everything in order, and what is to be done? It changes nothing."""

import dataclasses
import json
import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from oslo_config import cfg
from rich.table import Table
from rich.text import Text

from masakari_ng import conf as options
from masakari_ng import errors
from masakari_ng.cmd.checks import CHECKS, Check, Finding, Result, Site
from masakari_ng.demo.screen import console_of

_OPTIONS = (
    cfg.BoolOpt("json", default=False, help="For programs."),
    cfg.IntOpt("patience", default=15, min=1, help="Seconds that each check may take."),
)
_EXIT_CODES = {Result.WARNING: 1, Result.FAILURE: 2}
_STYLES = {Result.OK: "green", Result.WARNING: "yellow", Result.FAILURE: "bold red"}


def main(arguments: Sequence[str]) -> int:
    """Run all checks and print what they found.

    Args:
        arguments: command line after the name of the command.

    Returns:
        The exit code: 0 all is well, 1 there are warnings, 2 something fails.
    """
    # Libraries tell of failures, too; the table does.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        conf = options.load(arguments, program="masakari-ng doctor", subcommands=_OPTIONS)
        site, as_json = Site(conf, conf.patience), conf.json
    except cfg.Error as error:
        _print([(CHECKS[0], Finding(Result.FAILURE, str(error)))], as_json="--json" in arguments)
        return _EXIT_CODES[Result.FAILURE]
    try:
        done = list(_examined(site))
    finally:
        site.close()
    _print(done, as_json=as_json)
    return max(_EXIT_CODES.get(finding.result, 0) for _, finding in done)


def _examined(site: Site) -> Iterator[tuple[Check, Finding]]:
    missing: set[str] = set()
    for check in CHECKS:
        lacks = [name for name in check.needs if name in missing]
        if lacks:
            finding = Finding(Result.NOT_CHECKED, f"Needs: {', '.join(lacks)}.")
        else:
            finding = _outcome(check, site)
        if finding.result in {Result.FAILURE, Result.NOT_CHECKED}:
            missing.add(check.name)
        yield check, finding


def _outcome(check: Check, site: Site) -> Finding:
    """Run one check in a thread, which is left behind if it takes too long."""
    outcome: Future[Finding] = Future()
    threading.Thread(target=_run, args=(check, site, outcome), daemon=True).start()
    try:
        return outcome.result(site.patience)
    except TimeoutError:
        return Finding(Result.FAILURE, f"No answer within {site.patience} s.")


def _run(check: Check, site: Site, outcome: "Future[Finding]") -> None:
    try:
        finding = check.run(site)
    except (errors.MasakariError, cfg.Error) as error:
        finding = Finding(Result.FAILURE, str(error))
    except Exception as error:  # noqa: BLE001 - one among many; its text may hold a secret
        finding = Finding(Result.FAILURE, f"The check broke off: {type(error).__name__}.")
    outcome.set_result(finding)


def _print(done: Sequence[tuple[Check, Finding]], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"checks": [_document(*pair) for pair in done]}, indent=2))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("result", "check", "what was found, and what to do"):
        table.add_column(title, overflow="fold", no_wrap=title in {"result", "check"})
    for check, finding in done:
        told = Text(finding.found)
        if finding.result in _EXIT_CODES:
            told.append(f"\n-> {check.advice}", "bold")
        result = Text(finding.result, _STYLES.get(finding.result, "dim"))
        table.add_row(result, check.name, told)
    console_of(sys.stdout).print(table)


def _document(check: Check, finding: Finding) -> dict[str, Any]:
    advice = check.advice if finding.result in _EXIT_CODES else None
    return {"check": check.name} | dataclasses.asdict(finding) | {"advice": advice}
