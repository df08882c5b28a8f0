"""Signatures of manifests: Ed25519, with keys in PEM files as `openssl genpkey -algorithm ed25519` makes them."""

from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from indexer.snapshot.manifest import Manifest
from shared.copies import CopyRefused

_MOST_BYTES = 1 << 16


def private_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a file, unencrypted. Raises CopyRefused."""
    text, problem = _text(path), f"{path} holds no private key of Ed25519 as PEM, without a password"
    try:
        key = serialization.load_pem_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as cause:  # TypeError: it has a password
        raise CopyRefused(problem) from cause
    if not isinstance(key, Ed25519PrivateKey):
        raise CopyRefused(problem)
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a file. Raises CopyRefused."""
    text, problem = _text(path), f"{path} holds no public key of Ed25519 as PEM"
    try:
        key = serialization.load_pem_public_key(text)
    except (ValueError, UnsupportedAlgorithm) as cause:
        raise CopyRefused(problem) from cause
    if not isinstance(key, Ed25519PublicKey):
        raise CopyRefused(problem)
    return key


def sign(manifest: Manifest, key: Ed25519PrivateKey) -> Manifest:
    """The manifest with its signature."""
    return msgspec.structs.replace(manifest, signature=key.sign(manifest.signed_text).hex())


def check(manifest: Manifest, key: Ed25519PublicKey, where: str) -> None:
    """Raise CopyRefused unless the key signed the manifest, which comes from `where`."""
    if not manifest.signature:
        raise CopyRefused(f"{where} is not signed")
    try:
        key.verify(bytes.fromhex(manifest.signature), manifest.signed_text)
    except (InvalidSignature, ValueError) as cause:
        raise CopyRefused(f"{where} is not signed by the given key") from cause


def _text(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES)
    except OSError as cause:
        raise CopyRefused(f"{path} can't be read: {cause.strerror}") from cause
