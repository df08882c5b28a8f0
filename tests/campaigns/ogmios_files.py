"""`python -m tests.campaigns.ogmios_files --ogmios FOLDER`: everything agrees with Ogmios' own files.

FOLDER is a clone of https://github.com/CardanoSolutions/ogmios with its tags. For both versions it has the JSON
schemas of all answers, and golden answers: arbitrary values that test Ogmios' encoders. Four comparisons per version:

1. golden: the indexer reads every golden answer completely;
2. schema: Ogmios' schema, two mistakes of which are corrected, accepts golden answers;
3. vectors: it accepts the answers in tests/vectors, which the test command uses instead of these files;
4. devnet: it accepts what the devnet answers: blocks of every era, and to each query and to each
   submitted transaction.

Each difference is printed with its place.
"""

import asyncio
import io
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import msgspec
import referencing
import typer
from referencing.jsonschema import DRAFT7

from devnet.generator import Generated, Options
from tests.chain.decoding import KINDS, check_next_block, check_query
from tests.chain.ogmios import VERSIONS, Json, answers
from tests.pure.test_devnet import answers_to_queries, blocks_of_every_era, intersections_and_rollbacks
from tests.pure.test_devnet_mempool import monitored, refusals, running

SCHEMAS, GOLDEN_FOLDER = ("docs/static/ogmios.json", "docs/static/cardano.json"), "server/test/vectors"
SHOWN = 50
"""The number of differences that are printed."""


# NOTE: these golden answers contradict the schema. Both versions write accounts of treasury withdrawals and pools of
# projected rewards in bech32; the schema has hashes in hex.
_CONTRADICTED = ("NextTransaction", "QueryLedgerStateGovernanceProposals", "QueryLedgerStateProjectedRewards")


class Files:
    """Ogmios' files of one version."""

    def __init__(self, folder: Path) -> None:
        folders = [each for each in sorted((folder / GOLDEN_FOLDER).iterdir()) if _has_answers(each)]
        self.golden = [(_name_of(each), path) for each in folders for path in sorted(each.glob("*.json"))]
        self._registry = _registry(folder)
        self._validators: dict[str, Any] = {}

    def validate(self, answer: Json, name: str) -> None:
        """Raises jsonschema.ValidationError."""
        if name not in self._validators:
            schema = {"$ref": f"ogmios.json#/properties/{name}Response"}
            self._validators[name] = jsonschema.Draft7Validator(schema, registry=self._registry)
        problem = jsonschema.exceptions.best_match(self._validators[name].iter_errors(answer))
        if problem is not None:
            raise problem


def _has_answers(folder: Path) -> bool:
    """Whether these are answers; other folders have requests."""
    return folder.name.startswith("Query") or folder.name.endswith("Response")


def _name_of(folder: Path) -> str:
    """The name of an answer in the schema, without `Response`."""
    return folder.name.partition("_")[0].removesuffix("Response")


def _registry(folder: Path) -> Any:
    """The schemas, with two mistakes corrected."""
    documents = {Path(name).name: msgspec.json.decode((folder / name).read_bytes()) for name in SCHEMAS}
    value = documents["cardano.json"]["definitions"]["Value"]
    value["propertyNames"]["pattern"] = "^([0-9a-f]{56}|ada)$"  # the schema requires "ada" and forbids it
    byron = documents["cardano.json"]["definitions"]["Genesis<Byron>"]
    byron["required"].remove("protocolParameters")  # the schema requires this name and forbids it
    byron["properties"]["updatableParameters"] = {"$ref": "cardano.json#/definitions/BootstrapProtocolParameters"}
    return referencing.Registry().with_resources(
        (name, DRAFT7.create_resource(content)) for name, content in documents.items()
    )


class Comparison:
    """The comparisons made so far, by kind, and the differences."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()
        self.wrong: list[str] = []

    def make(self, kind: str, about: str, check: Callable[[], object]) -> None:
        """Make one comparison, and print its difference."""
        self.made[kind] += 1
        try:
            check()
        except Exception as wrong:  # noqa: BLE001 - also an unreadable answer
            place = (
                f"{wrong.json_path}: {wrong.message}" if isinstance(wrong, jsonschema.ValidationError) else repr(wrong)
            )
            self.wrong.append(f"{kind} {about}: {place}")
            if len(self.wrong) <= SHOWN:
                print(f"  WRONG {self.wrong[-1][:1_000]}", flush=True)


def compare(files: Files, version: tuple[int, int], comparison: Comparison) -> None:
    """All comparisons of one version."""
    queries = {schema_name(f"queryLedgerState/{query}"): query for query in KINDS}
    for name, path in files.golden:
        raw = path.read_bytes()
        about = f"{path.parent.name}/{path.name}"
        if name not in _CONTRADICTED:
            comparison.make("schema", about, partial(files.validate, msgspec.json.decode(raw), name))
        if name == "NextBlock":
            comparison.make("golden", about, partial(check_next_block, raw))
        elif name in queries:
            comparison.make("golden", about, partial(check_query, queries[name], raw))
    for kind, told in (("vectors", answers(version)), ("devnet", told_by_the_devnet(version))):
        for place, answer in enumerate(told):
            name = schema_name(answer["method"])
            comparison.make(kind, f"{name} {place}", partial(files.validate, answer, name))


def told_by_the_devnet(version: tuple[int, int]) -> Iterator[Json]:
    chain = Generated(Options(seed=21, density=4.0, blocks_per_epoch=40), 330)
    yield from blocks_of_every_era(version)
    yield from asyncio.run(answers_to_queries(chain, version))
    yield from asyncio.run(intersections_and_rollbacks(chain, version))
    yield from asyncio.run(_told_by_the_mempool(version))


async def _told_by_the_mempool(version: tuple[int, int]) -> list[Json]:
    async with running(version) as devnet:
        return [*await refusals(devnet), *await monitored(devnet)]


def schema_name(method: str) -> str:
    """`queryLedgerState/tip` is QueryLedgerStateTip."""
    scope, _, query = method.partition("/")
    return scope[0].upper() + scope[1:] + query[:1].upper() + query[1:]


def extract(clone: Path, tag: str, folder: Path) -> None:
    """Write the files of a tag that are needed to a folder. Raises CalledProcessError."""
    command = ["git", "-C", str(clone), "archive", "--format=tar", tag, *SCHEMAS, GOLDEN_FOLDER]
    packed = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def main(
    ogmios: Annotated[Path, typer.Option(exists=True, file_okay=False, help="A clone of Ogmios' repository.")],
) -> None:
    """Compare the indexer and the devnet with Ogmios' own files; exit status 1 if something differs."""
    wrong = 0
    for version in VERSIONS:
        tag = "v{}.{}.0".format(*version)
        with tempfile.TemporaryDirectory() as folder:
            extract(ogmios, tag, Path(folder))
            comparison = Comparison()
            compare(Files(Path(folder)), version, comparison)
        made = ", ".join(f"{count:,} of {kind}" for kind, count in comparison.made.items())
        print(f"{tag}: {made}; {len(comparison.wrong)} differ", flush=True)
        wrong += len(comparison.wrong)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(main)
