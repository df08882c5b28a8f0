"""The settings, read from environment variables. An invalid one is refused in one line that never shows a secret."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec

from shared import libpq, pool_list
from shared import setting_forms as forms
from shared.network import NETWORKS
from shared.setting_forms import SECRET, Form, IPNetwork, masked


class SettingsError(Exception):
    """An invalid setting. One line: the variable, its value (masked if secret) and the expected form."""


class Setting(NamedTuple):
    """The variable of a setting, the form of its value, and what is shown while it is unset and has no default."""

    variable: str
    form: Form
    unset: str = "(unset)"

    def shown(self, value: Any) -> str:
        """A value of this setting without secrets."""
        match value:
            case None | ():
                return self.unset
            case tuple():
                return ", ".join(map(self.shown, value))
            case str():
                return self.form.show(value).strip("'")
            case bool():
                return "on" if value else "off"
            case float():
                return f"{value:g}"
        return str(value)


OGMIOS_URLS = {network.name: Setting(f"OGMIOS_URL_{network.name.upper()}", forms.OGMIOS_URLS) for network in NETWORKS}
BOOTSTRAP_ADMIN_KEY = "BOOTSTRAP_ADMIN_KEY"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's settings, read once at start, each with its variable and its default. None means unset.

    Each of `read_database_urls` has one host. `ogmios_urls` are by network name, the node to follow first; networks
    without an address are absent. `data_dir` is absolute.
    """

    database_url: Annotated[
        str | None, Setting("DATABASE_URL", forms.POSTGRES_URL, "(unset: an embedded PostgreSQL in DATA_DIR)")
    ] = None
    read_database_urls: Annotated[
        tuple[str, ...], Setting("READ_DATABASE_URL", forms.POSTGRES_URLS, "(as DATABASE_URL)")
    ] = ()
    replica_lag_s: Annotated[float, Setting("REPLICA_LAG_S", forms.SECONDS)] = 10.0
    ready_lag_s: Annotated[float, Setting("READY_LAG_S", forms.SECONDS)] = 300.0
    redis_url: Annotated[
        str | None, Setting("REDIS_URL", forms.REDIS_URL, "(unset: an embedded Valkey in DATA_DIR)")
    ] = None
    ogmios_urls: Annotated[dict[str, tuple[str, ...]], OGMIOS_URLS] = {}
    split_blocks: Annotated[int, Setting("SPLIT_BLOCKS", forms.COUNT)] = 10
    on_split: Annotated[str, Setting("ON_SPLIT", forms.ON_SPLIT)] = "answer"
    bootstrap_admin_key: Annotated[str | None, Setting(BOOTSTRAP_ADMIN_KEY, forms.ADMIN_KEY)] = None
    api_host: Annotated[str, Setting("API_HOST", forms.HOST)] = "127.0.0.1"
    api_port: Annotated[int, Setting("API_PORT", forms.PORT)] = 8080
    token_registry_url: Annotated[
        str | None, Setting("TOKEN_REGISTRY_URL", forms.REGISTRY_URL, "(unset: no registry is queried)")
    ] = None
    pool_metadata: Annotated[bool, Setting("POOL_METADATA", forms.SWITCH)] = False
    pool_metadata_delisted: Annotated[
        Path | None, Setting("POOL_METADATA_DELISTED", forms.POOL_LIST, "(unset: no pool is delisted)")
    ] = None
    trusted_proxies: Annotated[tuple[IPNetwork, ...], Setting("TRUSTED_PROXIES", forms.PROXIES)] = ()
    usage_minutes_days: Annotated[int, Setting("USAGE_MINUTES_DAYS", forms.DAYS)] = 400
    usage_hours_days: Annotated[int, Setting("USAGE_HOURS_DAYS", forms.DAYS)] = 800
    audit_reads_days: Annotated[int, Setting("AUDIT_READS_DAYS", forms.DAYS)] = 90
    submitted_days: Annotated[int, Setting("SUBMITTED_DAYS", forms.DAYS)] = 7
    events_days: Annotated[int, Setting("EVENTS_DAYS", forms.DAYS)] = 30
    events_subscriptions: Annotated[int, Setting("EVENTS_SUBSCRIPTIONS", forms.COUNT)] = 100
    events_subjects: Annotated[int, Setting("EVENTS_SUBJECTS", forms.COUNT)] = 100_000
    events_streams: Annotated[int, Setting("EVENTS_STREAMS", forms.COUNT)] = 1_000
    events_streams_each: Annotated[int, Setting("EVENTS_STREAMS_EACH", forms.COUNT)] = 50
    webhooks_local: Annotated[bool, Setting("WEBHOOKS_LOCAL", forms.SWITCH)] = False
    data_dir: Annotated[Path, Setting("DATA_DIR", forms.FOLDER)] = msgspec.field(
        default_factory=lambda: Path(".data").absolute()
    )
    log_level: Annotated[str, Setting("LOG_LEVEL", forms.LOG_LEVEL)] = "info"
    log_format: Annotated[
        str | None, Setting("LOG_FORMAT", forms.LOG_FORMAT, "(unset: console on a terminal, else json)")
    ] = None
    access_log: Annotated[bool, Setting("ACCESS_LOG", forms.SWITCH)] = True

    def __repr__(self) -> str:
        """Without the values: addresses and keys are secrets, and a repr may appear in logs."""
        return "Settings(...)"


def _declared() -> Iterator[tuple[str, str | None, Setting]]:
    """Each setting with its field and, if the field has one for each network, the name of the network."""
    for field, hint in get_type_hints(Settings, include_extras=True).items():
        declared = hint.__metadata__[0]
        by_network = {None: declared} if isinstance(declared, Setting) else declared
        yield from ((field, network, setting) for network, setting in by_network.items())


_DECLARED = tuple(_declared())


def read(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this process. An empty variable counts as unset, since compose files pass empty ones.

    For each variable, `<name>_FILE` may name a file that contains the value. Raises SettingsError for the first invalid
    variable.
    """
    values: dict[str, Any] = {}
    for field, network, setting in _DECLARED:
        value = _taken(environ, setting.variable, setting.form)
        if value is not None:
            values[field] = value if network is None else {**values.get(field, {}), network: value}
    return Settings(**values)


def effective(settings: Settings) -> dict[str, str]:
    """The settings in effect by variable, without secrets, as an operator may show them to others."""
    shown: dict[str, str] = {}
    for field, network, setting in _DECLARED:
        value = getattr(settings, field)
        shown[setting.variable] = setting.shown(value if network is None else value.get(network))
    return shown


def ogmios_urls(name: str, text: str) -> tuple[str, ...]:
    """The addresses of Ogmios from the command line option `name`. Raises SettingsError."""
    urls: tuple[str, ...] = _parsed(name, text, forms.OGMIOS_URLS)
    return urls


def issued_bootstrap_key() -> SettingsError:
    """The refusal of a bootstrap key that was issued to a partner: one key can't be two callers."""
    return SettingsError(f"{BOOTSTRAP_ADMIN_KEY} is {SECRET}, expected a key that was not issued to a partner")


def unusable_database(url: str, cause: Exception) -> SettingsError:
    """The refusal of a database that answers but rejects our credentials."""
    return SettingsError(f"DATABASE_URL is {masked(url)}, expected a database that accepts the connection: {cause}")


def silent_database(url: str, cause: Exception) -> SettingsError:
    """The refusal of a database that can't be reached, or does not answer in time."""
    if url:
        return SettingsError(f"DATABASE_URL is {masked(url)}, expected a database that answers: {_named(cause)}")
    return SettingsError(f"the embedded Postgres (DATABASE_URL is unset) does not answer: {_named(cause)}")


def _named(cause: Exception) -> str:
    """An error with its kind; some have no text."""
    return f"{type(cause).__name__}: {cause}".rstrip(": ")


def _taken(environ: Mapping[str, str], name: str, form: Form) -> Any:
    """The value of a variable, None if it is unset."""
    text, path = environ.get(name, "").strip(), environ.get(f"{name}_FILE", "").strip()
    if not path:
        return _parsed(name, text, form) if text else None
    if text:
        raise SettingsError(f"{name} and {name}_FILE are both set, expected one of them")
    text = _parsed(f"{name}_FILE", path, _TEXT_FILE)
    return _parsed(f"{name} in {path}", text, form) if text else None


def _parsed(name: str, text: str, form: Form) -> Any:
    try:
        return form.parse(text)
    except libpq.Unsupported as cause:
        raise SettingsError(f"{name} is {form.show(text)}, expected {cause}") from None
    except forms.WrongAddress as wrong:
        raise SettingsError(f"{name}: address {wrong.place} is {wrong.shown}, expected {wrong.expected}") from None
    except pool_list.Unusable as cause:
        raise SettingsError(f"{name} is {form.show(text)}, expected {form.expected}: {cause}") from None
    except (ValueError, OSError) as cause:
        # NOTE: without the text of a ValueError, which may quote the value.
        why = f": {cause.strerror}" if isinstance(cause, OSError) and cause.strerror else ""
        raise SettingsError(f"{name} is {form.show(text)}, expected {form.expected}{why}") from None


def _content(path: str) -> str:
    return Path(path).expanduser().read_text().strip()


_TEXT_FILE = Form(_content, "a text file that can be read")
