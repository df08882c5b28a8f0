"""Warnings about Ogmios: command-line flags that are missing, and certificates of an unknown type."""

import structlog

from indexer.blocks.packed_block import PackedBlock

log = structlog.get_logger()


class NodeWarnings:
    """Warns of missing flags and unknown certificates, each once per process."""

    def __init__(self) -> None:
        self._cbor_unseen = self._metadata_unseen = True
        self._unknown_certificates: set[str] = set()

    def look(self, blocks: list[PackedBlock]) -> None:
        """Log new warnings about these blocks."""
        for observed in (block.observations for block in blocks):
            if self._cbor_unseen and observed.sized is not None:
                self._cbor_unseen = False
                if not observed.sized:
                    _tell("--include-transaction-cbor", "the size of transactions is unknown (null)")
            if self._metadata_unseen and observed.lossy is not None:
                self._metadata_unseen = False
                if observed.lossy:
                    _tell(
                        "--include-metadata-cbor (or --metadata-detailed-schema)",
                        "metadata entries with bytes as key or value are lost",
                    )
            # An unknown certificate may change stake in a way that the index does not follow.
            for kind, tx_hash in observed.unknown_certificates.items():
                if kind not in self._unknown_certificates:
                    self._unknown_certificates.add(kind)
                    log.warning("ogmios.certificate_unknown", kind=kind, transaction=tx_hash.hex())


def _tell(flag: str, cost: str) -> None:
    log.warning("ogmios.flag_missing", flag=flag, cost=cost)
