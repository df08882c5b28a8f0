"""Generated chains are valid. Only their JSON is replayed here, by a plain version of the ledger's rules."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from msgspec import Struct, json

from devnet import rules, submitted
from devnet.addresses import genesis_output_id, raw, reward_credential
from devnet.blocks import Block
from devnet.dialect import Dialect
from devnet.generator import Generated, Options, options_of, options_until_now
from devnet.ledger import Ledger, genesis_outputs
from devnet.parameters import SECURITY_PARAMETER
from devnet.refusal import Refusal
from devnet.server import NodeServer
from indexer.blocks import effects
from indexer.ogmios import frames
from shared import packed
from shared.ledger import label_prefix
from shared.metadata import USER_LABELS
from tests.chain.model import is_redeem_address
from tests.chain.model_chain import ERAS
from tests.wallet import Wallet

Json = dict[str, Any]

DIJKSTRA = Options(seed=5, eras=(("babbage", 0), ("conway", 1), ("dijkstra", 2)), era_epochs=1, blocks_per_epoch=60)
CHAINS = {
    "preview": (options_of("preview", seed=1), 1_500),
    "preprod": (options_of("preprod", seed=2, blocks_per_epoch=50), 900),
    "mainnet": (options_of("mainnet", seed=3, blocks_per_epoch=40), 900),
    "dijkstra": (DIJKSTRA, 600),
}


@pytest.fixture(scope="module", params=CHAINS)
def chain(request: pytest.FixtureRequest) -> Generated:
    options, blocks = CHAINS[request.param]
    return Generated(options, blocks)


@pytest.fixture(scope="module")
def preview() -> Generated:
    options, blocks = CHAINS["preview"]
    return Generated(options, blocks)


@pytest.fixture(scope="module")
def all_eras() -> Generated:
    return Generated(Options(seed=8, density=9, plain=0.1, eras=ERAS, era_epochs=1, blocks_per_epoch=30), 150)


class Replay:
    """The unspent outputs' values and the registered pools, which decide whether a transaction balances."""

    def __init__(self, chain: Generated) -> None:
        self.chain = chain
        self.unspent: dict[tuple[str, int], Counter[tuple[str, str]]] = {}
        self.pools: dict[str, int | None] = {}  # with the epoch in which each retires
        self.epoch = 0
        self.era = "byron"
        self.vouchers: set[tuple[str, int]] = set()  # whatever a transaction of Byron or the genesis pays to one
        for address, lovelace in genesis_outputs(chain.network, chain.genesis):
            self.unspent[genesis_output_id(address), 0] = Counter({("ada", "lovelace"): lovelace})
            if lovelace == 0 or (not address.startswith("addr") and is_redeem_address(address)):
                self.vouchers.add((genesis_output_id(address), 0))

    def follow(self, block: Block) -> None:
        self.epoch = self.chain.network.epoch_of(block.slot)
        self.pools = {id_: end for id_, end in self.pools.items() if end is None or end > self.epoch}
        self.begin_era(block.era)
        for tx in block.decoded().get("transactions", ()):
            if tx["spends"] == "collaterals":
                self.fail(tx)
            else:
                self.check(tx)

    def begin_era(self, era: str) -> None:
        """Outputs of no lovelace end with Byron, those of vouchers with Shelley."""
        ended = {each for each in self.vouchers & self.unspent.keys() if era != "byron"}
        if era == "shelley":
            ended = {each for each in ended if not self.unspent[each].total()}
        for each in ended:
            del self.unspent[each]
        self.era = era

    def fail(self, tx: Json) -> None:
        assert all(reference(source) in self.unspent for source in tx["inputs"]), "declared inputs exist"
        lost = sum((self.spend(source) for source in tx["collaterals"]), Counter())
        if "collateralReturn" in tx:
            self.unspent[tx["id"], len(tx["outputs"])] = value(tx["collateralReturn"]["value"])
            lost -= value(tx["collateralReturn"]["value"])
        assert set(lost) == {("ada", "lovelace")}
        assert tx.get("totalCollateral", ada(lost.total())) == ada(lost.total())

    def check(self, tx: Json) -> None:
        """A transaction and its sub-transactions balance as a whole and spend no output twice."""
        parts = [*tx.get("subTransactions", ()), tx]
        ids = [reference(source) for part in parts for source in part["inputs"]]
        assert ids, "a transaction spends something"
        assert len(ids) == len(set(ids))
        assert all(reference(source) in self.unspent for source in tx.get("references", ()))
        assert all(reference(source) in self.unspent for source in tx.get("collaterals", ()))
        left: Counter[tuple[str, str]] = Counter()
        for part in parts:
            for source in part["inputs"]:
                left.update(self.spend(source))
        for part in parts:
            for index, output in enumerate(part.get("outputs", ())):
                assert all(0 < quantity < 2**64 for quantity in value(output["value"]).values())
                self.unspent[part["id"], index] = value(output["value"])
                if self.era == "byron" and is_redeem_address(output["address"]):
                    self.vouchers.add((part["id"], index))
                left.subtract(value(output["value"]))
            left.update(value(part.get("mint", {})))
            left["ada", "lovelace"] += self.other_lovelace(part)
        if "fee" not in tx:  # in Byron the remainder is the fee
            assert self.chain.eras[0][0] == "byron"
            assert left.pop(("ada", "lovelace")) > 0
        assert not +left
        assert not -left

    def other_lovelace(self, tx: Json) -> int:
        """Withdrawals and refunds, less fee, deposits, credits and donations."""
        lovelace = sum(lovelace_of(amount) for amount in tx.get("withdrawals", {}).values())
        lovelace -= sum(lovelace_of(amount) for amount in tx.get("credits", {}).values())
        lovelace -= sum(lovelace_of(proposal.get("deposit", ada(0))) for proposal in tx.get("proposals", ()))
        lovelace -= lovelace_of(tx.get("treasury", {}).get("donation", ada(0)))
        lovelace -= lovelace_of(tx.get("fee", ada(0)))
        return lovelace - sum(self.deposit(certificate) for certificate in tx.get("certificates", ()))

    def deposit(self, certificate: Json) -> int:
        """The deposit of a certificate; negative if it refunds one."""
        match certificate["type"]:
            case "stakeCredentialRegistration":
                assert certificate.get("deposit", ada(2_000_000)) == ada(2_000_000)
                return 2_000_000
            case "stakeCredentialDeregistration":
                assert certificate.get("deposit", ada(2_000_000)) == ada(2_000_000)
                return -2_000_000
            case "stakePoolRegistration":
                fresh = certificate["stakePool"]["id"] not in self.pools
                self.pools[certificate["stakePool"]["id"]] = None
                return 500_000_000 if fresh else 0
            case "stakePoolRetirement":
                pool = certificate["stakePool"]
                assert self.epoch < pool["retirementEpoch"] <= self.epoch + 18
                assert pool["id"] in self.pools
                self.pools[pool["id"]] = pool["retirementEpoch"]
            case "stakeDelegation" if "stakePool" in certificate:
                assert certificate["stakePool"]["id"] in self.pools
            case "delegateRepresentativeRegistration":
                return lovelace_of(certificate["deposit"])
            case "delegateRepresentativeRetirement":
                return -lovelace_of(certificate["deposit"])
        return 0

    def spend(self, source: Json) -> Counter[tuple[str, str]]:
        return self.unspent.pop(reference(source))


def reference(source: Json) -> tuple[str, int]:
    return source["transaction"]["id"], source["index"]


def value(content: Json) -> Counter[tuple[str, str]]:
    return Counter({(policy, name): quantity for policy, names in content.items() for name, quantity in names.items()})


def ada(lovelace: int) -> Json:
    return {"ada": {"lovelace": lovelace}}


def lovelace_of(content: Json) -> int:
    lovelace: int = content["ada"]["lovelace"]
    return lovelace


def transactions(chain: Generated) -> list[Json]:
    return [tx for block in chain.blocks for tx in block.decoded().get("transactions", ())]


def test_every_transaction_balances_and_spends_existing_outputs(chain: Generated) -> None:
    replay = Replay(chain)
    for block in chain.blocks:
        replay.follow(block)
    assert replay.unspent.keys() == chain.ledger.unspent.keys()


def test_every_block_follows_its_parent(chain: Generated) -> None:
    for parent, block in zip(chain.blocks, chain.blocks[1:], strict=False):
        assert block.ancestor == parent.id
        if "slot" in block.content:
            after_boundary = "slot" not in parent.content
            assert block.slot > parent.slot or (after_boundary and block.slot == parent.slot)
            assert block.height == parent.height + 1
        else:
            assert block.height == parent.height
            assert block.slot == chain.network.epoch_start(chain.network.epoch_of(block.slot))
    ids = [tx["id"] for tx in transactions(chain)]
    assert len(set(ids)) == len(ids)
    assert len({block.id for block in chain.blocks}) == len(chain.blocks)


def test_no_lovelace_is_created_or_lost(chain: Generated) -> None:
    assert chain.ledger.total() == 45_000_000_000_000_000
    assert chain.ledger.unknown_inputs == 0
    assert all(account.rewards >= 0 for account in chain.ledger.accounts.values())


def test_donations_reach_the_treasury_when_the_epoch_ends(preview: Generated) -> None:
    ledger = Ledger.at_genesis(preview)
    most_donated, epoch, treasury = 0, ledger.epoch, ledger.treasury
    for block in preview.blocks:
        ledger.apply(block.decoded())
        assert ledger.treasury == treasury or ledger.epoch > epoch
        most_donated = max(most_donated, ledger.donations)
        epoch, treasury = ledger.epoch, ledger.treasury
    assert most_donated > 0


def test_withdrawals_empty_the_account(chain: Generated) -> None:
    blocks = [index for index, block in enumerate(chain.blocks) if b"withdrawals" in json.encode(block.content)]
    assert blocks
    for index in blocks[:40]:
        ledger = chain.fork(index - 1, seed=0).ledger
        ledger.begin_era(chain.blocks[index].era)
        ledger.enter(chain.blocks[index].slot)
        for tx in chain.blocks[index].decoded()["transactions"]:
            for account, amount in tx.get("withdrawals", {}).items():
                assert ledger.accounts[reward_credential(account)].rewards == lovelace_of(amount)
            ledger.apply_transaction(tx)


def test_supplies_equal_the_sums_over_outputs(chain: Generated) -> None:
    held: Counter[tuple[str, str]] = Counter()
    for output in chain.ledger.unspent.values():
        held.update(value(output["value"]))
    del held["ada", "lovelace"]
    assert held == Counter({asset: supply for asset, supply in chain.ledger.supplies.items() if supply})


def test_the_same_seed_makes_the_same_chain() -> None:
    options = Options(seed=11, blocks_per_epoch=30)
    once, again = Generated(options, 150), Generated(options, 100)
    again.grow(50)
    assert once.blocks == again.blocks
    assert once.blocks[0].id != Generated(Options(seed=12), 1).blocks[0].id


def test_a_chain_on_time_ends_now_and_grows_with_the_clock() -> None:
    started = datetime.now(UTC)
    chain = Generated(options_until_now(Options(seed=12, density=1), 300), 300)
    assert started - timedelta(days=4) < chain.network.time_of(chain.blocks[-1].slot) < started
    chain.on_time = True
    chain.grow(2)
    fork = chain.fork(298, seed=5, blocks=3)
    times = [chain.network.time_of(block.slot) for block in (*chain.blocks[-2:], *fork.blocks[-3:])]
    assert all(abs(time - started) < timedelta(seconds=60) for time in times)
    assert len({block.slot for block in fork.blocks}) == len(fork.blocks) == 302


def test_a_fork_is_a_valid_chain_with_the_same_first_blocks(preview: Generated) -> None:
    for after in (-1, 0, 700, 1_249, len(preview.blocks) - 1):
        fork = preview.fork(after, seed=99, blocks=30)
        assert fork.blocks[: after + 1] == preview.blocks[: after + 1]
        assert {block.id for block in fork.blocks[after + 1 :]}.isdisjoint(block.id for block in preview.blocks)
        replay = Replay(fork)
        for block in fork.blocks:
            replay.follow(block)
        assert replay.unspent.keys() == fork.ledger.unspent.keys()


def test_a_fork_of_a_fork_does_not_change_the_chains_that_it_leaves(preview: Generated) -> None:
    before, tip = preview.ledger.total(), preview.blocks[-1]
    first = preview.fork(1_000, seed=1, blocks=300)
    second = first.fork(1_200, seed=2, blocks=10)
    assert second.blocks[:1_201] == first.blocks[:1_201]
    assert (preview.ledger.total(), preview.blocks[-1]) == (before, tip)


def state(ledger: Ledger) -> Json:
    """The content of a ledger, in order where the generator depends on the order."""
    found = {name: value for name, value in vars(ledger).items() if name not in ("_undo", "_undos", "genesis")}
    found["wallets"] = {address: list(wallet.items()) for address, wallet in ledger.wallets.items() if wallet}
    for name in ("accounts", "pools", "representatives", "proposals"):
        found[name] = list(found[name].items())
    return found


def test_a_rewound_ledger_equals_one_that_never_went_further(chain: Generated) -> None:
    replayed, length = Ledger.at_genesis(chain), 0
    stops = sorted({0, 1, 2, *range(40, len(chain.blocks), 97), len(chain.blocks) - 1, len(chain.blocks)})
    states = {}
    for length in stops:
        replayed.advance(chain.blocks, length)
        states[length] = state(replayed.copy())
    assert state(chain.ledger) == states[length]
    rewound = chain.ledger.copy()
    for length in reversed(stops):
        rewound.rewind(length)
        assert state(rewound) == states[length], length
    rewound.advance(chain.blocks, len(chain.blocks))
    assert state(rewound) == state(chain.ledger)


def test_rewinding_undoes_an_unfinished_block(preview: Generated) -> None:
    ledger = preview.ledger.copy()
    ledger.rewind(700)
    before = state(ledger.copy())
    ledger.enter(preview.blocks[700].slot + 200_000)
    for tx in preview.blocks[700].decoded()["transactions"]:
        ledger.apply_transaction(tx)
    assert state(ledger) != before
    ledger.rewind(700)
    assert state(ledger) == before


def test_a_rollback_beyond_the_security_parameter_starts_over_from_genesis() -> None:
    chain = Generated(Options(seed=6, density=0.2), SECURITY_PARAMETER + 40)
    fork = chain.fork(20, seed=1, blocks=3)
    replayed = Ledger.at_genesis(chain)
    replayed.advance(fork.blocks, 24)
    assert state(fork.ledger) == state(replayed)


def test_a_fork_replays_no_common_block(preview: Generated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaying blocks delays every client, because it runs in the event loop."""
    applied: list[Json] = []
    apply = Ledger.apply

    def count(ledger: Ledger, block: Json) -> None:
        applied.append(block)
        apply(ledger, block)

    node = NodeServer(preview)
    node.ledger_after(len(preview.blocks) - 1)
    monkeypatch.setattr(Ledger, "apply", count)
    for depth in (1, 3, 100, 600):
        fork = preview.fork(len(preview.blocks) - 1 - depth, seed=depth, blocks=depth + 1)
        assert not applied
        for chain in (fork, preview):
            common = node.switch(chain)
            assert state(node.ledger_after(len(node.blocks) - 1)) == state(chain.ledger)
            assert applied == [block.content for block in chain.blocks[common + 1 :]]
            applied.clear()


def test_chains_contain_every_kind_of_content(preview: Generated) -> None:
    found = transactions(preview)
    certificates = [certificate for tx in found for certificate in tx.get("certificates", ())]
    assert {certificate["type"] for certificate in certificates} == set(packed.CERTIFICATES)
    assert any({"stakePool", "delegateRepresentative"} <= certificate.keys() for certificate in certificates)
    assert {"deposit" in certificate for certificate in certificates} == {True, False}
    failed = [tx for tx in found if tx["spends"] == "collaterals"]
    assert {("collateralReturn" in tx, "totalCollateral" in tx) for tx in failed} >= {(False, False), (True, True)}
    assert all(tx["mint"] and tx["outputs"] for tx in failed)
    assert any(len(tx["collateralReturn"]["value"]) > 1 for tx in failed if "collateralReturn" in tx)
    assert max(preview.ledger.supplies.values()) > 2**64
    assert "" in {name for _, name in preview.ledger.supplies}
    labels = {label_prefix(label).hex() for label in (100, *USER_LABELS)}
    assert {name[:8] for _, name in preview.ledger.supplies} >= labels
    assert any(quantity < 0 for tx in found for quantity in value(tx.get("mint", {})).values())
    fields = {field for tx in found for field in tx}
    assert fields >= {
        "references", "withdrawals", "proposals", "votes", "treasury", "datums", "redeemers", "validityInterval",
        "metadata", "requiredExtraSignatories", "scriptIntegrityHash",
    }  # fmt: skip
    outputs = [output for tx in found for output in tx["outputs"]]
    assert {field for output in outputs for field in output} == {"address", "value", "datum", "datumHash", "script"}
    relays = [relay for certificate in certificates for relay in certificate.get("stakePool", {}).get("relays", ())]
    assert {frozenset(relay) for relay in relays} >= {
        frozenset({"type", "ipv4", "port"}), frozenset({"type", "ipv6", "port"}), frozenset({"type", "hostname"}),
    }  # fmt: skip
    assert {block.era for block in preview.blocks} == {"alonzo", "babbage", "conway"}
    assert any(not block.decoded()["transactions"] for block in preview.blocks)


def test_chains_contain_every_field_that_the_indexer_reads(all_eras: Generated) -> None:
    """A field that is in no generated block would not be read by any test."""
    read, met = set[str](), set[str]()
    for block in all_eras.blocks:
        collect_fields(frames.Block, block.decoded(), read, met)
    assert len(read) > 50
    assert read - met == set()


def collect_fields(kind: Any, shown: Any, read: set[str], met: set[str]) -> None:
    """Add the fields of each Struct in a type to `read`, and those present in a JSON value to `met`."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        hints = get_type_hints(kind)
        for name, in_json in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
            (declared_in, *_) = (
                each.__name__ for each in reversed(kind.__mro__) if name in getattr(each, "__annotations__", ())
            )
            read.add(f"{declared_in}.{in_json}")
            if isinstance(shown, dict) and in_json in shown:
                met.add(f"{declared_in}.{in_json}")
                collect_fields(hints[name], shown[in_json], read, met)
        return
    inside = shown.values() if isinstance(shown, dict) else shown if isinstance(shown, list) else ()
    for part in get_args(kind):
        for each in [shown] if get_origin(kind) is UnionType else inside:
            collect_fields(part, each, read, met)


def test_chains_fill_every_extra_of_a_transaction(all_eras: Generated) -> None:
    """An extra that is always empty would not be compared by any test."""
    # packed_block adds certificates; redeemers that spend nothing are in the recorded chains and test_script_redeemers.
    nothing, empty = packed.Extra(), set(packed.Extra.__struct_fields__) - {"certificates", "redeemers"}
    for dialect in (Dialect((7, 0)), Dialect((7, 0), metadata_cbor=False, detailed=True)):
        for block in all_eras.blocks:
            read = json.decode(dialect.block(block.content), type=frames.Block)
            for tx in (tx for group in effects.of_block(read).transactions for tx in group):
                empty -= {name for name in empty if getattr(tx.extra, name) != getattr(nothing, name)}
    assert empty == set()


def test_pools_return_and_retirements_are_cancelled_and_moved(preview: Generated) -> None:
    """At least one pool registers again after it was reaped; one retirement is cancelled, one moved."""
    registered: dict[str, int | None] = {}
    returned = cancelled = moved = 0
    known: set[str] = set()
    for block in preview.blocks:
        epoch = preview.network.epoch_of(block.slot)
        registered = {id_: end for id_, end in registered.items() if end is None or end > epoch}
        for tx in block.decoded()["transactions"]:
            for certificate in tx.get("certificates", ()) if tx["spends"] == "inputs" else ():
                if certificate["type"] == "stakePoolRegistration":
                    id_ = certificate["stakePool"]["id"]
                    returned += id_ in known and id_ not in registered
                    cancelled += registered.get(id_) is not None
                    registered[id_] = None
                    known.add(id_)
                elif certificate["type"] == "stakePoolRetirement":
                    id_ = certificate["stakePool"]["id"]
                    moved += registered[id_] is not None
                    registered[id_] = certificate["stakePool"]["retirementEpoch"]
    assert returned
    assert cancelled
    assert moved
    assert registered.keys() == preview.ledger.pools.keys()


def test_a_reaped_pool_loses_its_delegators(preview: Generated) -> None:
    """They stay without a pool even if it registers again."""
    ledger = Ledger.at_genesis(preview)
    reaped = 0
    for block in preview.blocks:
        before = set(ledger.pools)
        ledger.enter(block.slot)
        reaped += len(before - set(ledger.pools))
        assert {account.pool for account in ledger.accounts.values()} <= {None, *ledger.pools}
        ledger.apply(block.decoded())
    assert reaped > 2


def test_byron_vouchers_are_redeemed() -> None:
    chain = Generated(options_of("mainnet", seed=4), 300)
    vouchers = [genesis_output_id(address) for address in chain.cast.voucher_addresses]
    spent = {source["transaction"]["id"] for tx in transactions(chain) for source in tx["inputs"]}
    assert [voucher in spent for voucher in vouchers] == [True, True, True, True, False, False]
    assert chain.blocks[0].content == json.decode(Dialect().block(chain.blocks[0].content))
    assert {"slot", "size"}.isdisjoint(chain.blocks[0].decoded())


def test_vouchers_that_nobody_redeemed_return_to_the_reserves_with_allegra() -> None:
    """Those of the genesis, and ada that a transaction has paid to one; until then they are unspent outputs."""
    chain = Generated(options_of("preprod", seed=3, blocks_per_epoch=16, density=5), 330)
    first = next(place for place, block in enumerate(chain.blocks) if block.era == "allegra")
    ledger = chain.fork(first - 1, seed=0).ledger
    vouchers = {address for address in chain.cast.voucher_addresses if ledger.wallets[address]}
    left = [each for address in vouchers for each in ledger.wallets[address]]
    lovelace = sum(lovelace_of(ledger.unspent[each]["value"]) for each in left)
    assert len(vouchers) == 2
    assert len(left) > 2
    reserves, unspent = ledger.reserves, len(ledger.unspent)
    ledger.begin_era("allegra")
    assert ledger.reserves == reserves + lovelace
    assert len(ledger.unspent) == unspent - len(left)
    assert not any(ledger.wallets[address] for address in vouchers)
    ledger.rewind(first)
    assert (ledger.reserves, len(ledger.unspent)) == (reserves, unspent)
    assert {address for address in chain.cast.voucher_addresses if ledger.wallets[address]} == vouchers
    assert ledger.vouchers == set(left)
    for source in left:
        late = submitted.read(Wallet.of_faucet().payment(source, lovelace, 2_000_000).to_cbor(), (7, 0))
        with pytest.raises(Refusal, match="unknown output references"):
            rules.check(late, chain.ledger, chain.blocks[-1].era, chain.blocks[-1].slot)


def test_outputs_of_no_lovelace_end_with_byron() -> None:
    chain = Generated(options_of("preprod", seed=3, blocks_per_epoch=16), 200)
    first = next(place for place, block in enumerate(chain.blocks) if block.era == "shelley")
    empty = [
        each
        for place in (first, first + 1)
        for each in chain.fork(place - 1, seed=0).ledger.unspent.values()
        if not lovelace_of(each["value"])
    ]
    assert [each["address"] for each in empty] == [next(a for a, n in chain.genesis.byron_funds.items() if not n)]


def test_one_address_receives_far_more_than_most(preview: Generated) -> None:
    paid = Counter(output["address"] for tx in transactions(preview) for output in tx["outputs"])
    people = [paid[address] for address in preview.cast.people]
    assert people[0] > 20 * sorted(people)[len(people) // 2]


def test_addresses_of_every_kind_are_paid(preview: Generated) -> None:
    paid = {output["address"] for tx in transactions(preview) for output in tx["outputs"]}
    headers = {raw(address)[0] >> 4 for address in paid if address.startswith("addr_test1")}
    assert headers == {0, 1, 2, 3, 4, 6, 7}  # CIP-19: base (four), pointer (one of two), enterprise (two)
    assert any(address.startswith(("2cWKMJ", "FHnt4N")) for address in paid)  # Byron
