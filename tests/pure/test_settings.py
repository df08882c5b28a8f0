"""Settings from the environment, and the messages of refusals."""

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from shared import hosts, pool_list, setting_forms, settings
from shared.encoding import bech32_encode
from shared.settings import SettingsError

SECONDS = "seconds in decimal digits, more than 0 and less than 1000000000"
REDIS_FORM = "redis://, rediss://, unix://, redis+sentinel:// or rediss+sentinel:// and an address"
KEY = "iiak_admin_" + "0123456789abcdef" * 2 + "01234567"


def test_unset_variables_have_the_documented_defaults() -> None:
    found = settings.read({})
    assert (found.database_url, found.read_database_urls, found.redis_url) == (None, (), None)
    assert (found.ogmios_urls, found.bootstrap_admin_key, found.token_registry_url) == ({}, None, None)
    assert (found.api_host, found.api_port, found.trusted_proxies) == ("127.0.0.1", 8080, ())
    assert (found.pool_metadata, found.pool_metadata_delisted) == (False, None)
    assert (found.data_dir, found.log_level, found.log_format) == (Path.cwd() / ".data", "info", None)


def test_every_variable_is_read() -> None:
    found = settings.read(
        {
            "DATABASE_URL": "postgresql://u:p@db:5432/ledger",
            "READ_DATABASE_URL": "postgresql://u:p@r1/ledger, postgres://u:p@r2/ledger",
            "REDIS_URL": "rediss://:p@queue:6380/2",
            "OGMIOS_URL_MAINNET": "wss://ogmios.example/path",
            "OGMIOS_URL_PREPROD": "ws://[::1]:1337, wss://other/x,ws://third",
            "BOOTSTRAP_ADMIN_KEY": KEY,
            "API_HOST": "0.0.0.0",
            "API_PORT": "80",
            "TOKEN_REGISTRY_URL": "https://tokens.example/metadata/{subject}",
            "TRUSTED_PROXIES": "10.0.0.0/8, 192.168.1.7, fd00::/8",
            "DATA_DIR": "/srv/ledgerline",
            "LOG_LEVEL": "WARNING",
            "LOG_FORMAT": "json",
            "ACCESS_LOG": "OFF",
            "WEBHOOKS_LOCAL": "on",
        }
    )
    assert found.database_url == "postgresql://u:p@db:5432/ledger"
    assert found.read_database_urls == ("postgresql://u:p@r1/ledger", "postgres://u:p@r2/ledger")
    assert found.redis_url == "rediss://:p@queue:6380/2"
    assert found.ogmios_urls == {
        "mainnet": ("wss://ogmios.example/path",),
        "preprod": ("ws://[::1]:1337", "wss://other/x", "ws://third"),
    }
    assert found.bootstrap_admin_key == KEY
    assert (found.api_host, found.api_port) == ("0.0.0.0", 80)
    assert found.token_registry_url == "https://tokens.example/metadata/{subject}"
    assert found.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("192.168.1.7/32"), ip_network("fd00::/8"))
    assert (found.data_dir, found.log_level, found.log_format) == (Path("/srv/ledgerline"), "warning", "json")
    assert not found.access_log and found.webhooks_local


def test_an_address_of_several_hosts_is_accepted_and_shown_without_its_password() -> None:
    url = "postgresql://u:hush@h1:5432,h2:5433,h3/db?sslmode=disable"
    found = settings.read({"DATABASE_URL": url, "READ_DATABASE_URL": f"{url},postgres://r/db", "REPLICA_LAG_S": "2.5"})
    assert found.database_url == url
    each = tuple(f"postgresql://u:hush@{host}/db?sslmode=disable" for host in ("h1:5432", "h2:5433", "h3"))
    assert hosts.split(url) == each
    assert found.read_database_urls == (*each, "postgres://r/db")
    assert found.replica_lag_s == 2.5
    assert setting_forms.masked(url) == "'postgresql://u:***@h1:5432,h2:5433,h3/db?***'"


def test_a_value_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("postgresql://u:hush@db/ledger\n")
    assert settings.read({"DATABASE_URL_FILE": str(file)}).database_url == "postgresql://u:hush@db/ledger"
    port = tmp_path / "port"
    port.write_text("http")
    (tmp_path / "empty").touch()
    assert settings.read({"API_PORT_FILE": str(tmp_path / "empty"), "DATABASE_URL_FILE": ""}) == settings.read({})
    for environ, line in (
        ({"API_PORT_FILE": str(port)}, f"API_PORT in {port} is 'http', expected a port from 1 to 65535"),
        (
            {"API_PORT_FILE": str(tmp_path / "none")},
            f"API_PORT_FILE is '{tmp_path}/none', expected a text file that can be read: No such file or directory",
        ),
        (
            {"API_PORT_FILE": str(port), "API_PORT": "80"},
            "API_PORT and API_PORT_FILE are both set, expected one of them",
        ),
    ):
        with pytest.raises(SettingsError) as refused:
            settings.read(environ)
        assert str(refused.value) == line


def test_a_list_of_pools_is_read_at_start(tmp_path: Path) -> None:
    path = tmp_path / "pools"
    path.write_text(f"# the operator's list\n{'ab' * 28}  # why\n\n{bech32_encode('pool', bytes(28))}\n")
    found = settings.read({"POOL_METADATA": "on", "POOL_METADATA_DELISTED": str(path)})
    assert (found.pool_metadata, found.pool_metadata_delisted) == (True, path)
    assert pool_list.read(path) == {b"\xab" * 28, bytes(28)}
    path.write_text(f"{'ab' * 28}\npool1x\n")
    with pytest.raises(SettingsError) as refused:
        settings.read({"POOL_METADATA_DELISTED": str(path)})
    assert str(refused.value) == (
        f"POOL_METADATA_DELISTED is '{path}', expected a text file with a pool id per line: line 2 is not a pool id"
    )
    with pytest.raises(SettingsError, match="No such file or directory"):
        settings.read({"POOL_METADATA_DELISTED": f"{path}.none"})
    path.write_text("#" * (pool_list.MAX_BYTES + 1))
    with pytest.raises(SettingsError, match="it has more than 1,048,576 bytes"):
        settings.read({"POOL_METADATA_DELISTED": str(path)})


def test_an_empty_variable_counts_as_unset() -> None:
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
            "DATABASE_URL",
            "postgresql://h1:5432,h2:x/ledger",
            "DATABASE_URL is 'postgresql://h1:5432,h2:x/ledger', expected postgresql://user:password@host:port/database",
        ),
        (
            "DATABASE_URL",
            "postgresql://u:p@h1,,h2/ledger",
            "DATABASE_URL is 'postgresql://u:***@h1,,h2/ledger', expected postgresql://user:password@host:port/database",
        ),
        ("READY_LAG_S", "-5", f"READY_LAG_S is '-5', expected {SECONDS}"),
        ("REPLICA_LAG_S", "0", f"REPLICA_LAG_S is '0', expected {SECONDS}"),
        ("REPLICA_LAG_S", "1e9", f"REPLICA_LAG_S is '1e9', expected {SECONDS}"),
        ("REPLICA_LAG_S", "soon", f"REPLICA_LAG_S is 'soon', expected {SECONDS}"),
        (
            "READ_DATABASE_URL",
            "postgresql://r1/x,r2",
            "READ_DATABASE_URL is 'postgresql://r1/x,r2', "
            "expected postgresql://user:password@host:port/database, several with commas",
        ),
        (
            "REDIS_URL",
            "localhost:6379",
            f"REDIS_URL is 'localhost:6379', expected {REDIS_FORM}",
        ),
        (
            "OGMIOS_URL_PREVIEW",
            "http://o:1337",
            "OGMIOS_URL_PREVIEW is 'http://o:1337', expected ws:// or wss:// and the address of Ogmios",
        ),
        (
            "OGMIOS_URL_PREVIEW",
            "ws://a,http://b:1337/?key=hush",
            "OGMIOS_URL_PREVIEW: address 2 is 'http://b:1337/?***', expected ws:// or wss:// and the address of Ogmios",
        ),
        (
            "OGMIOS_URL_PREVIEW",
            "ws://us:hush@a,ws://",
            "OGMIOS_URL_PREVIEW: address 2 is (not shown), expected ws:// or wss:// and the address of Ogmios",
        ),
        (
            "OGMIOS_URL_PREVIEW",
            "ws://a,ws://b,ws://a",
            "OGMIOS_URL_PREVIEW: address 3 is 'ws://a', expected an address that differs from those before it",
        ),
        (
            "OGMIOS_URL_PREVIEW",
            ",".join(f"ws://a{number}" for number in range(1, 10)),
            "OGMIOS_URL_PREVIEW: address 9 is 'ws://a9', expected 8 addresses at most",
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
            "DATABASE_URL is 'postgresql://db/ledger?***', expected an address with "
            "sslmode=disable or allow or prefer or require or verify-ca or verify-full",
        ),
        (
            "DATABASE_URL",
            "postgresql://u:hush@db/ledger?channel_binding=require",
            "DATABASE_URL is 'postgresql://u:***@db/ledger?***', "
            "expected an address with channel_binding=disable or prefer",
        ),
        (
            "DATABASE_URL",
            "postgresql://db/ledger?scram_client_key=hush",
            "DATABASE_URL is 'postgresql://db/ledger?***', expected an address without scram_client_key",
        ),
        (
            "DATABASE_URL",
            "host=db password=hush",
            "DATABASE_URL is ***, expected postgresql://user:password@host:port/database",
        ),
        (
            "DATABASE_URL",
            "postgresql://db/ledger?sslmode=verify-full&sslrootcert=/nowhere.pem",
            "DATABASE_URL is 'postgresql://db/ledger?***', expected an address whose sslrootcert is a file or `system`",
        ),
        (
            "REDIS_URL",
            "redis://queue/first",
            f"REDIS_URL is 'redis://queue/first', expected {REDIS_FORM}",
        ),
        (
            "REDIS_URL",
            "redis://queue/0?db=x",
            f"REDIS_URL is 'redis://queue/0?***', expected {REDIS_FORM}",
        ),
        (
            "REDIS_URL",
            "redis://queue/?colour=red",
            f"REDIS_URL is 'redis://queue/?***', expected {REDIS_FORM}",
        ),
        (
            "REDIS_URL",
            "rediss://queue/0?ssl_cert_reqs=x",
            f"REDIS_URL is 'rediss://queue/0?***', expected {REDIS_FORM}",
        ),
        (
            "REDIS_URL",
            "redis+sentinel://:p@h1,h2",
            f"REDIS_URL is 'redis+sentinel://:***@h1,h2', expected {REDIS_FORM}",
        ),
        (
            "REDIS_URL",
            "redis+sentinel://h1:x/primary/0",
            f"REDIS_URL is 'redis+sentinel://h1:x/primary/0', expected {REDIS_FORM}",
        ),
        (
            "REDIS_URL",
            "rediss://queue/0?ssl_ca_certs=/nowhere.pem",
            f"REDIS_URL is 'rediss://queue/0?***', expected {REDIS_FORM}",
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
def test_a_wrong_value_is_refused_with_the_expected_form(name: str, value: str, line: str) -> None:
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
        ("REDIS_URL", "redis+sentinel://:p%40w@h1:26379,h2,h3:1/primary/2?sentinel_password=x&socket_timeout=1"),
        ("REDIS_URL", "rediss+sentinel://h1/primary?ssl_cert_reqs=none"),
        ("REDIS_URL", "redis://queue/0/"),
        ("REDIS_URL", "redis:///1"),
        ("REDIS_URL", "unix:///run/valkey.sock?db=1"),
        ("REDIS_URL", "rediss://queue?ssl_cert_reqs=none"),
        ("API_HOST", "::1"),
        ("API_HOST", "127.1"),
        ("API_HOST", "api.example"),
    ],
)
def test_every_form_of_an_address_is_accepted(name: str, value: str) -> None:
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
    assert setting_forms.masked("mysql://user:hush@host:1/db?x=y") == "'mysql://user:***@host:1/db?***'"


def test_settings_do_not_show_their_secrets() -> None:
    assert KEY not in repr(settings.read({"BOOTSTRAP_ADMIN_KEY": KEY}))


def test_settings_in_effect_show_addresses_and_no_secrets() -> None:
    given = {
        "DATABASE_URL": "postgresql://us:hush@db:5433/ledger",
        "READ_DATABASE_URL": "postgresql://us:hush@r1/ledger,postgresql://us:hush@r2/ledger",
        "REDIS_URL": "rediss://us:hush@cache:6380/1",
        "OGMIOS_URL_PREVIEW": "wss://us:hush@node/x,ws://b/?key=hush",
        "TOKEN_REGISTRY_URL": "https://us:hush@registry/{subject}",
        "BOOTSTRAP_ADMIN_KEY": KEY,
        "TRUSTED_PROXIES": "10.0.0.0/8,::1",
        "ACCESS_LOG": "off",
    }
    shown = settings.effective(settings.read(given))
    assert {name: shown[name] for name in given} == {
        "DATABASE_URL": "postgresql://us:***@db:5433/ledger",
        "READ_DATABASE_URL": "postgresql://us:***@r1/ledger, postgresql://us:***@r2/ledger",
        "REDIS_URL": "rediss://us:***@cache:6380/1",
        "OGMIOS_URL_PREVIEW": "wss://us:***@node/x, ws://b/?***",
        "TOKEN_REGISTRY_URL": "https://us:***@registry/{subject}",
        "BOOTSTRAP_ADMIN_KEY": "(not shown)",
        "TRUSTED_PROXIES": "10.0.0.0/8, ::1/128",
        "ACCESS_LOG": "off",
    }
    assert settings.effective(settings.read({}))["DATABASE_URL"] == "(unset: an embedded PostgreSQL in DATA_DIR)"


def test_a_wrong_command_line_option_is_named() -> None:
    assert settings.ogmios_urls("--ogmios-url", "ws://o") == ("ws://o",)
    with pytest.raises(SettingsError, match=r"^--ogmios-url is 'o', expected ws://"):
        settings.ogmios_urls("--ogmios-url", "o")


def test_the_settings_read_in_effect_and_in_the_guide_are_the_same() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    section = guide.partition("\n## Settings\n")[2].partition("\n## ")[0]
    named = {name for cell in re.findall(r"^\|([^|]*)\|", section, flags=re.MULTILINE) for name in NAMES.findall(cell)}
    environ = NotedEnvironment()
    in_effect = settings.effective(settings.read(environ))
    assert environ.names == {name for each in named for name in (each, f"{each}_FILE")}
    assert in_effect.keys() == named


class NotedEnvironment(dict[str, str]):
    """An empty environment that notes which variables are read."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return default


NAMES = re.compile(r"`([A-Z][A-Z_]+)`")
