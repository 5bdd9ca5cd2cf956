"""Prices of resource-hours, from a YAML file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import attrs

from yunikorn.config.document import Mapping as YamlMapping
from yunikorn.config.document import compose, show
from yunikorn.config.yaml_reading import Findings, YamlTable
from yunikorn.errors import ConfigError, Problem, UsageError, printable
from yunikorn.text import suggest
from yunikorn_commands.input_files import InputFile
from yunikorn_commands.input_source import InputError, read_content, yaml_text
from yunikorn_lab.history_reports.history_result import hours_of

KEYS = ("currency", "prices", "queues")
LARGEST = 1e12
"""Largest price, so that no sum is infinite."""


@attrs.frozen
class PriceList:
    """Prices for an hour of a core, of a GiB of memory, and of one of any other resource type."""

    file: str
    currency: str
    prices: Mapping[str, float]
    queues: Mapping[str, Mapping[str, float]]
    """Prices that differ in a queue and the queues below it."""

    def cost(self, queue: str, service: Mapping[str, int]) -> float:
        """Return the cost of a service (amounts times ms) in a queue, in no whole cents."""
        prices = self._in_queue(queue)
        return sum(prices[name] * hours_of(name, value) for name, value in service.items() if name in prices)

    def _in_queue(self, queue: str) -> Mapping[str, float]:
        found = dict(self.prices)
        parts = queue.split(".")
        for count in range(1, len(parts) + 1):
            found.update(self.queues.get(".".join(parts[:count]), {}))
        return found

    def check(self, types: Collection[str], queues: Collection[str]) -> None:
        """Raise `UsageError` for prices of resource types and queues that the history does not have."""
        named = dict.fromkeys(name for prices in (self.prices, *self.queues.values()) for name in prices)
        problems = [
            f"{self.file}: the history has no resource type '{name}'{suggest(name, types)}; "
            f"known: {', '.join(sorted(types))}"
            for name in named
            if name not in types
        ]
        problems += [
            f"{self.file}: queues.{queue}: the history has no queue '{queue}'{suggest(queue, queues)}"
            for queue in self.queues
            if queue not in queues
        ]
        if problems:
            raise UsageError("\n".join(map(printable, problems)))


def read_prices(path: InputFile) -> PriceList:
    """Read a file of prices; raises `InputError` that lists all problems."""
    file = str(path)
    findings = Findings()
    try:
        root, problems = compose(yaml_text(read_content(path), file))
    except ConfigError as error:
        raise InputError(file, error.problems) from error
    if not isinstance(root, YamlMapping):
        got = "only comments" if root is None else show(root)
        raise InputError(
            file, [Problem("", f"expected a mapping with the keys {', '.join(KEYS)}, got {got}")]
        )
    findings.problems.extend(problems)
    document = YamlTable("", root, findings)
    document.only(KEYS)
    prices = dict(_prices(document.table("prices")))
    table = document.table("queues")
    queues = {}
    for queue in table.node.entries if table is not None else ():
        assert table is not None
        if queue != "root" and not queue.startswith("root."):
            findings.problem(table.key_spot(queue), "expected the full path of a queue, such as root.batch")
        queues[queue] = dict(_prices(table.table(queue)))
    if not prices and not queues and not findings.problems:
        document.problem("prices", "expected prices, such as vcore: 0.03")
    if findings.problems:
        raise InputError(file, sorted(findings.problems, key=lambda one: (one.line, one.column)))
    return PriceList(file, document.text("currency"), prices, queues)


def _prices(table: YamlTable | None) -> Iterator[tuple[str, float]]:
    for name in table.node.entries if table is not None else ():
        assert table is not None
        price = table.number(name)
        if price is not None and not 0 <= price <= LARGEST:
            table.problem(name, f"expected a price from 0 to {LARGEST:.0e}, got {price:g}")
        elif price is not None:
            yield name, price
