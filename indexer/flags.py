"""What the node leaves out for want of command-line flags of Ogmios, and what it says that we don't know: told once."""

import structlog

from indexer.parcels import Parcel

log = structlog.get_logger()


class Flags:
    """Looks at blocks for what an operator should know; says each thing once per process."""

    def __init__(self) -> None:
        self._cbor_unseen = self._metadata_unseen = True
        self._unknown_certificates: set[str] = set()

    def look(self, parcels: list[Parcel]) -> None:
        """Look at some blocks."""
        for signs in (parcel.signs for parcel in parcels):
            if self._cbor_unseen and signs.sized is not None:
                self._cbor_unseen = False
                if not signs.sized:
                    _tell("--include-transaction-cbor", "the size of transactions is unknown (null)")
            if self._metadata_unseen and signs.lossy is not None:
                self._metadata_unseen = False
                if signs.lossy:
                    _tell(
                        "--include-metadata-cbor (or --metadata-detailed-schema)",
                        "metadata entries with bytes as key or value are lost",
                    )
            # A kind of certificate that nobody had thought of may change stake in a way that the index does not follow.
            for kind, tx_hash in signs.unknown_certificates.items():
                if kind not in self._unknown_certificates:
                    self._unknown_certificates.add(kind)
                    log.warning("ogmios.certificate_unknown", kind=kind, transaction=tx_hash.hex())


def _tell(flag: str, cost: str) -> None:
    log.warning("ogmios.flag_missing", flag=flag, cost=cost)
