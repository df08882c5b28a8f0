"""What the node leaves out for want of command-line flags of Ogmios, and what it says that we don't know: told once."""

import structlog

from indexer.ogmios import Forward
from indexer.pools import CERTIFICATES

log = structlog.get_logger()

_DETAILED = (b'{"int"', b'{"string"', b'{"bytes"', b'{"list"', b'{"map"')


class Flags:
    """Looks at blocks for what an operator should know; says each thing once per process."""

    def __init__(self) -> None:
        self._cbor_unseen = self._metadata_unseen = True
        self._unknown_certificates: set[str] = set()

    def look(self, forwards: list[Forward]) -> None:
        """Look at some blocks."""
        self._look_for_certificates(forwards)
        if not (self._cbor_unseen or self._metadata_unseen):
            return
        for forward in forwards:
            for tx in (tx for group in forward.block.transactions for tx in group):
                if self._cbor_unseen:
                    self._cbor_unseen = False
                    if tx.size is None:
                        _tell("--include-transaction-cbor", "the size of transactions is unknown (null)")
                if self._metadata_unseen and (tx.extra.metadata_cbor or tx.extra.metadata_json):
                    self._metadata_unseen = False
                    if any(_loses_bytes(json) for json in tx.extra.metadata_json.values()):
                        _tell(
                            "--include-metadata-cbor (or --metadata-detailed-schema)",
                            "metadata entries with bytes as key or value are lost",
                        )

    def _look_for_certificates(self, forwards: list[Forward]) -> None:
        """A kind of certificate that nobody had thought of may change stake in a way that the index does not follow."""
        for forward in forwards:
            for tx in (tx for group in forward.block.transactions for tx in group if tx.certificates):
                for kind in {certificate.type for certificate in tx.certificates} - CERTIFICATES:
                    if kind not in self._unknown_certificates:
                        self._unknown_certificates.add(kind)
                        log.warning("ogmios.certificate_unknown", kind=kind, transaction=tx.tx_hash.hex())


def _tell(flag: str, cost: str) -> None:
    log.warning("ogmios.flag_missing", flag=flag, cost=cost)


def _loses_bytes(json: bytes) -> bool:
    """Whether a metadatum that came as JSON is in Ogmios' default form, in which bytes have no place."""
    return not json.startswith(_DETAILED)
