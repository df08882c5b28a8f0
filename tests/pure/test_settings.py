"""The environment: what is read from it, and what is refused in which words."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from shared import settings
from shared.settings import SettingsError

KEY = "iiak_admin_" + "0123456789abcdef" * 2 + "01234567"


def test_nothing_set_gives_the_defaults_of_the_contract() -> None:
    found = settings.read({})
    assert (found.database_url, found.read_database_urls, found.redis_url) == (None, (), None)
    assert (found.ogmios_urls, found.bootstrap_admin_key, found.token_registry_url) == ({}, None, None)
    assert (found.api_host, found.api_port, found.trusted_proxies) == ("127.0.0.1", 8080, ())
    assert (found.data_dir, found.log_level, found.log_format) == (Path.cwd() / ".data", "info", None)


def test_every_variable_is_read() -> None:
    found = settings.read(
        {
            "DATABASE_URL": "postgresql://u:p@db:5432/ledger",
            "READ_DATABASE_URL": "postgresql://u:p@r1/ledger, postgres://u:p@r2/ledger",
            "REDIS_URL": "rediss://:p@queue:6380/2",
            "OGMIOS_URL_MAINNET": "wss://ogmios.example/path",
            "OGMIOS_URL_PREPROD": "ws://[::1]:1337",
            "BOOTSTRAP_ADMIN_KEY": KEY,
            "API_HOST": "0.0.0.0",
            "API_PORT": "80",
            "TOKEN_REGISTRY_URL": "https://tokens.example/metadata/{subject}",
            "TRUSTED_PROXIES": "10.0.0.0/8, 192.168.1.7, fd00::/8",
            "DATA_DIR": "/srv/ledgerline",
            "LOG_LEVEL": "WARNING",
            "LOG_FORMAT": "json",
        }
    )
    assert found.database_url == "postgresql://u:p@db:5432/ledger"
    assert found.read_database_urls == ("postgresql://u:p@r1/ledger", "postgres://u:p@r2/ledger")
    assert found.redis_url == "rediss://:p@queue:6380/2"
    assert found.ogmios_urls == {"mainnet": "wss://ogmios.example/path", "preprod": "ws://[::1]:1337"}
    assert found.bootstrap_admin_key == KEY
    assert (found.api_host, found.api_port) == ("0.0.0.0", 80)
    assert found.token_registry_url == "https://tokens.example/metadata/{subject}"
    assert found.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("192.168.1.7/32"), ip_network("fd00::/8"))
    assert (found.data_dir, found.log_level, found.log_format) == (Path("/srv/ledgerline"), "warning", "json")


def test_an_empty_variable_is_an_unset_one() -> None:
    assert settings.read({"DATABASE_URL": "", "API_PORT": " ", "LOG_FORMAT": ""}) == settings.read({})


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("API_PORT", "http", "API_PORT is 'http', expected a port from 1 to 65535"),
        ("API_PORT", "65536", "API_PORT is '65536', expected a port from 1 to 65535"),
        ("API_PORT", "٣", "API_PORT is '٣', expected a port from 1 to 65535"),
        ("API_HOST", "a b", "API_HOST is 'a b', expected a host name or an IP address"),
        (
            "DATABASE_URL",
            "mysql://db/ledger",
            "DATABASE_URL is 'mysql://db/ledger', expected postgresql://user:password@host:port/database",
        ),
        (
            "READ_DATABASE_URL",
            "postgresql://r1/x,r2",
            "READ_DATABASE_URL is 'postgresql://r1/x,r2', "
            "expected postgresql://user:password@host:port/database, several with commas",
        ),
        (
            "REDIS_URL",
            "localhost:6379",
            "REDIS_URL is 'localhost:6379', expected redis://, rediss:// or unix:// and an address",
        ),
        (
            "OGMIOS_URL_PREVIEW",
            "http://o:1337",
            "OGMIOS_URL_PREVIEW is 'http://o:1337', expected ws:// or wss:// and the address of Ogmios",
        ),
        (
            "OGMIOS_URL_MAINNET",
            "ws://:1337",
            "OGMIOS_URL_MAINNET is 'ws://:1337', expected ws:// or wss:// and the address of Ogmios",
        ),
        (
            "TOKEN_REGISTRY_URL",
            "https://t/x",
            "TOKEN_REGISTRY_URL is 'https://t/x', expected an http:// or https:// address that contains {subject}",
        ),
        (
            "TRUSTED_PROXIES",
            "10.0.0.1/8",
            "TRUSTED_PROXIES is '10.0.0.1/8', expected networks like 10.0.0.0/8, several with commas",
        ),
        ("API_HOST", "999.1.1.1", "API_HOST is '999.1.1.1', expected a host name or an IP address"),
        (
            "DATABASE_URL",
            "postgresql://db/ledger?sslmode=bogus",
            "DATABASE_URL is 'postgresql://db/ledger?***', expected postgresql://user:password@host:port/database",
        ),
        (
            "DATABASE_URL",
            "postgresql://db/ledger?sslmode=verify-full&sslrootcert=/nowhere.pem",
            "DATABASE_URL is 'postgresql://db/ledger?***', expected postgresql://user:password@host:port/database",
        ),
        (
            "REDIS_URL",
            "redis://queue/first",
            "REDIS_URL is 'redis://queue/first', expected redis://, rediss:// or unix:// and an address",
        ),
        (
            "REDIS_URL",
            "redis://queue/0?db=x",
            "REDIS_URL is 'redis://queue/0?***', expected redis://, rediss:// or unix:// and an address",
        ),
        (
            "REDIS_URL",
            "redis://queue/?colour=red",
            "REDIS_URL is 'redis://queue/?***', expected redis://, rediss:// or unix:// and an address",
        ),
        (
            "REDIS_URL",
            "rediss://queue/0?ssl_cert_reqs=x",
            "REDIS_URL is 'rediss://queue/0?***', expected redis://, rediss:// or unix:// and an address",
        ),
        (
            "DATA_DIR",
            f"{__file__}/x",
            f"DATA_DIR is '{__file__}/x', expected a folder, existing or not",
        ),
        ("DATA_DIR", __file__, f"DATA_DIR is {__file__!r}, expected a folder, existing or not"),
        ("LOG_LEVEL", "loud", "LOG_LEVEL is 'loud', expected debug or info or warning or error or critical"),
        ("LOG_FORMAT", "xml", "LOG_FORMAT is 'xml', expected console or json"),
        (
            "BOOTSTRAP_ADMIN_KEY",
            "secret-of-mine",
            "BOOTSTRAP_ADMIN_KEY is (not shown), expected iiak_admin_ and 40 hex characters",
        ),
        (
            "BOOTSTRAP_ADMIN_KEY",
            KEY + "0",
            "BOOTSTRAP_ADMIN_KEY is (not shown), expected iiak_admin_ and 40 hex characters",
        ),
    ],
)
def test_a_wrong_value_is_named_and_what_is_expected_said(name: str, value: str, line: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        settings.read({name: value})
    assert str(refusal.value) == line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgresql:///ledger?host=/run/postgresql"),
        ("DATABASE_URL", "postgres://db/ledger?sslmode=verify_full&application_name=x"),
        ("DATABASE_URL", "postgresql://db/ledger?passfile=/nowhere&sslmode=disable&sslcert=/nowhere"),
        ("REDIS_URL", "redis://queue:6379/"),
        ("REDIS_URL", "redis://queue/0/"),
        ("REDIS_URL", "redis:///1"),
        ("REDIS_URL", "unix:///run/valkey.sock?db=1"),
        ("REDIS_URL", "rediss://queue?ssl_cert_reqs=none"),
        ("API_HOST", "::1"),
        ("API_HOST", "127.1"),
        ("API_HOST", "api.example"),
    ],
)
def test_every_form_of_an_address_is_taken(name: str, value: str) -> None:
    assert value in (settings.read({name: value}).database_url, settings.read({name: value}).redis_url) or (
        settings.read({name: value}).api_host == value
    )


@pytest.mark.parametrize("name", ["DATABASE_URL", "READ_DATABASE_URL", "REDIS_URL", "OGMIOS_URL_MAINNET"])
@pytest.mark.parametrize(
    "address",
    [
        "foo://user:hush@host/db",
        "foo://user:hu/sh@host/db",
        "foo://user:hu?sh@host/db",
        "foo://user:hu#sh@host/db",
        "foo://user:hu@sh@host/db",
        "foo://user:[hush@host/db",
        "foo://host/db?password=hush",
        "foo://host/db?user=a@b&password=hush",
        "user:hush@host/db",
        "foo://user:x@host1/db,foo://user:hush@host2/db",
        "postgresql://user:hush@host:port/db",
        "postgresql://user:hush@host/db\nnext",
    ],
)
def test_no_part_of_a_password_is_shown(name: str, address: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        settings.read({name: address})
    shown = str(refusal.value)
    assert "hu" not in shown
    assert "sh@" not in shown
    assert "\n" not in shown


def test_an_address_is_shown_without_its_password() -> None:
    assert settings.masked("mysql://user:hush@host:1/db?x=y") == "'mysql://user:***@host:1/db?***'"


def test_settings_do_not_show_their_secrets() -> None:
    assert KEY not in repr(settings.read({"BOOTSTRAP_ADMIN_KEY": KEY}))


def test_an_option_of_the_command_line_is_refused_by_its_own_name() -> None:
    assert settings.ogmios_url("--ogmios-url", "ws://o") == "ws://o"
    with pytest.raises(SettingsError, match=r"^--ogmios-url is 'o', expected ws://"):
        settings.ogmios_url("--ogmios-url", "o")
