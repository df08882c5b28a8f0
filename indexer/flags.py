"""What the node leaves out for want of command-line flags of Ogmios, said once, with what it costs."""

import structlog

from indexer import frames
from indexer.ogmios import Forward

log = structlog.get_logger()

_DETAILED = ("int", "string", "bytes", "list", "map")


class Flags:
    """Looks at blocks until it has seen all there is to say."""

    def __init__(self) -> None:
        self._cbor_unseen = self._metadata_unseen = True

    def look(self, forwards: list[Forward]) -> None:
        """Look at some blocks; says each thing once per process."""
        if not (self._cbor_unseen or self._metadata_unseen):
            return
        for forward in forwards:
            for tx in forward.block.transactions:
                if self._cbor_unseen:
                    self._cbor_unseen = False
                    if not tx.cbor:
                        _tell("--include-transaction-cbor", "the size of transactions is unknown (null)")
                if self._metadata_unseen and tx.metadata is not None and tx.metadata.labels:
                    self._metadata_unseen = False
                    if any(_loses_bytes(label) for label in tx.metadata.labels.values()):
                        _tell(
                            "--include-metadata-cbor (or --metadata-detailed-schema)",
                            "metadata entries with bytes as key or value are lost",
                        )


def _tell(flag: str, cost: str) -> None:
    log.warning("ogmios.flag_missing", flag=flag, cost=cost)


def _loses_bytes(label: frames.Label) -> bool:
    """Whether a metadatum has only Ogmios' default JSON, in which bytes have no form."""
    if label.cbor is not None or not label.json:
        return False
    text = bytes(label.json)
    return not any(text.startswith(b'{"%s"' % key.encode()) for key in _DETAILED)
