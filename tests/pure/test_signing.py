"""Keys of snapshots: PEM files as openssl makes them."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from indexer.snapshot import signing
from shared.copies import CopyRefused


def test_only_pem_files_with_a_key_of_ed25519_are_taken(tmp_path: Path) -> None:
    pem, pkcs8, bare = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    key, other, path = Ed25519PrivateKey.generate(), X25519PrivateKey.generate(), tmp_path / "key.pem"
    path.write_bytes(key.private_bytes(pem, pkcs8, bare))
    assert signing.private_key(path).private_bytes_raw() == key.private_bytes_raw()
    locked = key.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"password"))
    public = key.public_key().public_bytes(pem, info)
    for text in (locked, public, other.private_bytes(pem, pkcs8, bare), b"", b"\xff" * 10):
        path.write_bytes(text)
        with pytest.raises(CopyRefused, match=f"^{path} holds no private key of Ed25519 as PEM, without a password$"):
            signing.private_key(path)
    path.write_bytes(public)
    assert signing.public_key(path).public_bytes_raw() == key.public_key().public_bytes_raw()
    for text in (key.private_bytes(pem, pkcs8, bare), other.public_key().public_bytes(pem, info), b""):
        path.write_bytes(text)
        with pytest.raises(CopyRefused, match=f"^{path} holds no public key of Ed25519 as PEM$"):
            signing.public_key(path)
    with pytest.raises(CopyRefused, match=r"missing can't be read: No such file or directory$"):
        signing.public_key(tmp_path / "missing")
