"""Warnings about Ogmios: command-line flags that are missing, and certificates of an unknown type."""

import structlog

from indexer.blocks.packed_block import Observations, PackedBlock

log = structlog.get_logger()

_TRANSACTION_CBOR = "--include-transaction-cbor"
_METADATA_CBOR = "--include-metadata-cbor (or --metadata-detailed-schema)"
COSTS = {
    _TRANSACTION_CBOR: "sizes, most hashes of native reference scripts and some places of certificates are null",
    _METADATA_CBOR: "metadata entries with bytes as key or value are lost",
}
"""The data that the index lacks without each flag of Ogmios."""


def flags_set(observed: Observations) -> dict[str, bool | None]:
    """Whether each flag of COSTS is set; None if the block does not show it."""
    return {_TRANSACTION_CBOR: observed.sized, _METADATA_CBOR: None if observed.lossy is None else not observed.lossy}


class NodeWarnings:
    """Warns of missing flags and unknown certificates, each once per process."""

    def __init__(self) -> None:
        self._unseen_flags = set(COSTS)
        self._unknown_certificates: set[str] = set()

    def look(self, blocks: list[PackedBlock]) -> None:
        """Log new warnings about these blocks."""
        for observed in (block.observations for block in blocks):
            if self._unseen_flags:
                self._look_for_flags(observed)
            # An unknown certificate may change stake in a way that the index does not follow.
            for kind, tx_hash in observed.unknown_certificates.items():
                if kind not in self._unknown_certificates:
                    self._unknown_certificates.add(kind)
                    log.warning("ogmios.certificate_unknown", kind=kind, transaction=tx_hash.hex())

    def _look_for_flags(self, observed: Observations) -> None:
        for flag, is_set in flags_set(observed).items():
            if is_set is not None and flag in self._unseen_flags:
                self._unseen_flags.remove(flag)
                if not is_set:
                    log.warning("ogmios.flag_missing", flag=flag, cost=COSTS[flag])
