"""Every refusal, worded once. `raise errors.transaction_not_found()` ends a request with that status and text."""

from collections.abc import Mapping


class Refusal(Exception):
    """An answer that is no success: `{success: false, error: message}` with a status and, now and then, headers."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


# The request itself ---------------------------------------------------------------------------------------------------


def malformed_request() -> Refusal:
    """Bytes that are no HTTP request, or a body that breaks off or can't be unpacked."""
    return Refusal(400, "Bad request")


def wrong_parameter(name: str, expected: str) -> Refusal:
    """A query parameter, path parameter or body field of the wrong type or out of its range."""
    return Refusal(400, f"{name} {expected}")


def wrong(message: str) -> Refusal:
    """The same, where the specification gives the whole text."""
    return Refusal(400, message)


def invalid_json_body() -> Refusal:
    """A body that is no JSON object, holds a NUL or a lone surrogate, or is nested beyond reason."""
    return Refusal(400, "Invalid JSON body")


def not_found() -> Refusal:
    """A path that no route has."""
    return Refusal(404, "Not found")


def method_not_allowed(allowed: str) -> Refusal:
    """A path with other methods than this one; `allowed` lists them."""
    return Refusal(405, "Method not allowed", {"Allow": allowed})


def request_timeout() -> Refusal:
    """A body that does not arrive."""
    return Refusal(408, "Request timeout")


def body_too_large() -> Refusal:
    """A body above 1 MiB."""
    return Refusal(413, "Request body too large")


def expectation_failed() -> Refusal:
    """An `Expect` header other than `100-continue`."""
    return Refusal(417, "Expectation failed")


def internal_error() -> Refusal:
    """Our own fault; the log says which."""
    return Refusal(500, "Internal server error")


def database_not_available() -> Refusal:
    """Postgres does not answer, or drops the connection."""
    return Refusal(503, "Database not available")


def too_slow() -> Refusal:
    """An answer that takes longer than a request may."""
    return Refusal(503, "Request timed out")


def not_ready(reasons: str) -> Refusal:
    """What keeps this process from answering, or from answering with recent data."""
    return Refusal(503, f"Not ready: {reasons}")


# Chain data -----------------------------------------------------------------------------------------------------------


def network_not_available() -> Refusal:
    """No indexer has served this network yet, or its first run has not reached the tip."""
    return Refusal(503, "Network not available")


def invalid_address() -> Refusal:
    """Neither a bech32 payment address nor a Byron address."""
    return Refusal(400, "Invalid address format")


def foreign_address() -> Refusal:
    """An address of another network than the key's."""
    return Refusal(400, "Address does not belong to this network")


def invalid_asset() -> Refusal:
    """No `<policy_id>.<asset_name>` in hex digits, the name of at most 32 bytes."""
    return Refusal(
        400,
        "Invalid asset identifier format. Expected: {policy_id}.{asset_name} where policy_id is 56 hex characters",
    )


def invalid_policy_id() -> Refusal:
    """Anything but 56 hex digits."""
    return Refusal(400, "Invalid policy ID format. Expected 56 hex characters")


def asset_not_found() -> Refusal:
    """No indexed transaction moved the asset."""
    return Refusal(404, "Asset not found")


def invalid_pool_id() -> Refusal:
    """Neither bech32 `pool1…` nor 56 hex digits."""
    return Refusal(400, "Invalid pool ID format")


def pool_not_found() -> Refusal:
    """No registration certificate of the indexed chain names the pool."""
    return Refusal(404, "Pool not found")


def invalid_transaction_hash() -> Refusal:
    """Anything but 64 hex digits."""
    return Refusal(400, "Invalid transaction hash format")


def transaction_not_found() -> Refusal:
    """No transaction with that hash."""
    return Refusal(404, "Transaction not found")


# Who may call ---------------------------------------------------------------------------------------------------------


def missing_admin_key() -> Refusal:
    """No Authorization header, several, or another form than `Bearer <token>`, on an admin path."""
    return Refusal(401, "Missing or invalid admin API key", {"WWW-Authenticate": "Bearer"})


def invalid_admin_key() -> Refusal:
    """A token that is no admin key, or that of a revoked one."""
    return Refusal(403, "Invalid admin API key")


def permission_denied(permission: str) -> Refusal:
    """An admin key that was issued without this permission."""
    return Refusal(403, f"Permission denied: {permission} required")


def missing_api_key() -> Refusal:
    """No Authorization header, several, or another form than `Bearer <token>`, on a chain path."""
    return Refusal(401, "Missing or invalid API key", {"WWW-Authenticate": "Bearer"})


def invalid_api_key() -> Refusal:
    """A token that is no API key, or that of a revoked one."""
    return Refusal(403, "Invalid API key")


def expired_api_key() -> Refusal:
    """An API key whose `expires_at` has come."""
    return Refusal(403, "API key has expired")


def inactive_account() -> Refusal:
    """An API key of an account that is suspended or pending."""
    return Refusal(403, "User account is not active")


def rate_limit_exceeded() -> Refusal:
    """A request beyond the key's limit per minute; `Retry-After` says when the next one is admitted."""
    return Refusal(429, "Rate limit exceeded")


def usage_not_recorded() -> Refusal:
    """A request that can't be counted, because the spool's disk is full or the spool has reached its bound."""
    return Refusal(503, "Usage cannot be recorded")


# Partner administration -----------------------------------------------------------------------------------------------


def user_account_not_found() -> Refusal:
    """No such account of the caller: foreign or missing."""
    return Refusal(404, "User account not found")


def credential_not_found() -> Refusal:
    """No such credential of the caller: foreign or missing."""
    return Refusal(404, "Credential not found")


def credential_not_found_or_revoked() -> Refusal:
    """No such credential of the caller that could still be changed."""
    return Refusal(404, "Credential not found or already revoked")


def admin_key_not_found_or_revoked() -> Refusal:
    """No such admin key that could still be revoked."""
    return Refusal(404, "Admin key not found or already revoked")


def bootstrap_owns_no_users() -> Refusal:
    """The bootstrap key, where users are created or changed."""
    return Refusal(400, "The bootstrap admin key cannot manage users: create an admin key first")


def bootstrap_owns_no_credentials() -> Refusal:
    """The bootstrap key, where credentials are created."""
    return Refusal(400, "The bootstrap admin key cannot manage credentials: create an admin key first")


def bootstrap_stays() -> Refusal:
    """The bootstrap key as the one to revoke: the setting says what it is."""
    return Refusal(400, "The bootstrap admin key cannot be revoked")


def external_id_in_use() -> Refusal:
    """A second account of one admin key with the same `external_id`."""
    return Refusal(409, "external_id already in use")


def nothing_to_update() -> Refusal:
    """An update of a credential that names none of its fields."""
    return Refusal(400, "At least one field (name or description) must be provided")


def not_in_the_future() -> Refusal:
    """A key that would be born expired."""
    return Refusal(400, "expires_at must be in the future")


def dates_reversed() -> Refusal:
    """A period that ends before it starts."""
    return Refusal(400, "start_date must not be after end_date")
