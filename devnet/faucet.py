"""The faucet key: a well-known signing key, with ada on every generated chain that is served.

Never use it anywhere else. Its signing key is the Blake2b-256 hash of `Ledgerline devnet faucet`.
"""

from devnet import addresses
from devnet.addresses import LedgerCredential

SIGNING_KEY = "ca9d4fade27468c7f45e3eac1d636a11a06984251986b4e1c1d734608163d24f"
VERIFICATION_KEY = "bf005ca4833df41a560553e57fcc54bbc8948afb81ab9e703a6179446c2e70c7"

OUTPUTS = 20
OUTPUT_LOVELACE = 1_000_000_000_000


def address(address_tag: int) -> str:
    """Its enterprise address."""
    hash_ = addresses.blake2b_224(bytes.fromhex(VERIFICATION_KEY))
    return addresses.enterprise_address(address_tag, LedgerCredential("verificationKey", hash_))


def signing_key_file() -> str:
    """The signing key in the format of cardano-cli, which pycardano reads too."""
    return (
        '{"type": "PaymentSigningKeyShelley_ed25519", "description": "Faucet of the devnet", '
        f'"cborHex": "5820{SIGNING_KEY}"}}\n'
    )
