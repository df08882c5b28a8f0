"""Every error answer, worded once. Those that only the façade gives are in `api/blockfrost/refusals.py`.

`raise errors.transaction_not_found()` ends a request with that status and text.

The docstring of each function is its entry in the reference: the cause, then what the caller can do. If several
functions of one code share a sentence, the reference has it once.
"""

from collections.abc import Mapping

FITTING_LIMIT = "Fitting-Limit"
_REPLAYED = {"Idempotent-Replayed": "true"}
_BY_NODE = "The node refused the transaction"


class Refusal(Exception):
    """An error answer: `{success: false, error: message}` with a status and, for some errors, headers.

    `code` is the header `Error-Code`: a word for programs, which does not change with the message.
    """

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers or {}

    def about(self, name: str) -> "Refusal":
        """The same with the name of the value that it is about, such as one of several ids."""
        return Refusal(self.status, self.code, f"{name}: {self.message}", self.headers)


# The request itself ---------------------------------------------------------------------------------------------------


def malformed_request() -> Refusal:
    """A malformed HTTP request, or a body that is incomplete or can't be decompressed.

    Send a complete HTTP/1.1 request; compress bodies with gzip or deflate only.
    """
    return Refusal(400, "malformed_request", "Bad request")


def invalid_parameter(message: str) -> Refusal:
    """A query parameter, path parameter or body field of the wrong type or out of its range.

    Correct the parameter or field that the message names.
    """
    return Refusal(400, "invalid_parameter", message)


def missing_parameter(message: str) -> Refusal:
    """A required parameter or field that is absent.

    Send the parameter or field that the message names.
    """
    return Refusal(400, "missing_parameter", message)


def invalid_json_body() -> Refusal:
    """A body that is not a JSON object, contains a NUL or a lone surrogate, or is nested too deeply.

    Send one JSON object, and no NUL characters.
    """
    return Refusal(400, "invalid_json_body", "Invalid JSON body")


def not_found() -> Refusal:
    """A path without a route.

    Compare the path with this reference; a trailing slash makes another path.
    """
    return Refusal(404, "not_found", "Not found")


def method_not_allowed(allowed: str) -> Refusal:
    """A path without this method; `allowed` lists its methods.

    Use one of the methods that `Allow` lists.
    """
    return Refusal(405, "method_not_allowed", "Method not allowed", {"Allow": allowed})


def request_timeout() -> Refusal:
    """A body that does not arrive in time.

    Send the whole body within 20 seconds.
    """
    return Refusal(408, "request_timeout", "Request timeout")


def body_too_large() -> Refusal:
    """A body above 1 MiB.

    Send at most 1 MiB.
    """
    return Refusal(413, "body_too_large", "Request body too large")


def expectation_failed() -> Refusal:
    """An `Expect` header other than `100-continue`.

    Leave `Expect` out, or send `100-continue`.
    """
    return Refusal(417, "expectation_failed", "Expectation failed")


def internal_error() -> Refusal:
    """A bug in this service; its operator finds the cause in the log.

    Retry later; report the `X-Request-Id` if the error persists.
    """
    return Refusal(500, "internal_error", "Internal server error")


def database_not_available() -> Refusal:
    """Postgres does not answer or dropped the connection.

    Retry with growing pauses.
    """
    return Refusal(503, "database_not_available", "Database not available")


def upgrade_in_progress() -> Refusal:
    """An admin request, or a transaction to submit, during an upgrade: the database already has a newer schema.

    Retry after the upgrade, in a few minutes.
    """
    return Refusal(503, "upgrade_in_progress", "Service is being upgraded")


def too_slow() -> Refusal:
    """A request that exceeds the time limit.

    Retry after a pause; request less, such as a smaller `limit` or a shorter period.
    """
    return Refusal(503, "too_slow", "Request timed out")


def answer_too_large(limited_by: str, most: int) -> Refusal:
    """A list of more than 16 MiB, before compression. One entry alone is always answered, whatever its size.

    Send at most as large a `limit` (below `/blockfrost`, `count`) as the message names, or at most as many ids. It is
    also in the header `Fitting-Limit`.
    """
    what = "send fewer ids, at most" if limited_by == "ids" else f"send a smaller {limited_by}, at most"
    return Refusal(400, "answer_too_large", f"Answer too large: {what} {most}", {FITTING_LIMIT: str(most)})


def not_ready(reasons: str) -> Refusal:
    """The process or the network is not ready; the message lists the reasons.

    `/ready`: send requests to another process. `/ready/{network}`: wait; if usage cannot be recorded, send requests to
    another process.
    """
    return Refusal(503, "not_ready", f"Not ready: {reasons}")


# Chain data -----------------------------------------------------------------------------------------------------------


def network_not_available() -> Refusal:
    """A network without an index, or whose initial sync has not finished.

    Retry later; `/ready` shows how far the index is.
    """
    return Refusal(503, "network_not_available", "Network not available")


def chain_split() -> Refusal:
    """The nodes of this service have different chains, and one of them will be undone.

    Retry later; `/status` shows after which block they differ, and when they agree again.
    """
    return Refusal(503, "chain_split", "The chain has split: there are no answers until its nodes agree again")


def invalid_address() -> Refusal:
    """Neither a bech32 payment address nor a Byron address.

    Send a payment address as wallets show it, not a stake address.
    """
    return Refusal(400, "invalid_address", "Invalid address format")


def foreign_address() -> Refusal:
    """A mainnet address with the key of a test network, or vice versa.

    Use an API key of the address' network.
    """
    return Refusal(400, "foreign_address", "Address does not belong to this network")


def invalid_payment_credential() -> Refusal:
    """A value that is not a payment credential.

    Send the hash of a key or of a script in bech32, `addr_vkh1…` or `script1…`, or a key, `addr_vk1…` (CIP-5).
    """
    return Refusal(400, "invalid_payment_credential", "Invalid payment credential format")


def invalid_stake_address() -> Refusal:
    """A value that is not a stake address.

    Send a stake address as wallets show it, `stake1…` or `stake_test1…`, not a payment address.
    """
    return Refusal(400, "invalid_stake_address", "Invalid stake address format")


def foreign_stake_address() -> Refusal:
    """A mainnet stake address with the key of a test network, or vice versa.

    Use an API key of the stake address' network.
    """
    return Refusal(400, "foreign_address", "Stake address does not belong to this network")


def invalid_output_reference() -> Refusal:
    """A value that is not 64 hex digits, `#` and an index.

    Send the hash of the transaction, `#` and the index of the output there.
    """
    return Refusal(400, "invalid_output_reference", "Invalid output reference format. Expected: {tx_hash}#{index}")


def output_not_found() -> Refusal:
    """An output that no indexed transaction has made.

    Check hash and index; a new output appears with its block.
    """
    return Refusal(404, "output_not_found", "Output not found")


_EXPECTED_ASSET = (
    "Invalid asset identifier format. Expected: {policy_id}.{asset_name} where policy_id is 56 hex characters"
)


def invalid_asset() -> Refusal:
    """Neither a fingerprint nor 56 hex digits, a dot (optional before a name) and a name of 0 to 64 hex digits.

    Send `<policy_id>.<asset_name>` in hex digits, or the fingerprint.
    """
    return Refusal(400, "invalid_asset", _EXPECTED_ASSET)


def asset_without_dot() -> Refusal:
    """A policy id where an asset is expected.

    Add a dot for the asset with the empty name; list the assets of a policy by `/v1/assets/policy/{policyId}`.
    """
    return Refusal(400, "invalid_asset", f"{_EXPECTED_ASSET}; the dot is missing")


def invalid_fingerprint(fault: str) -> Refusal:
    """Text that resembles the fingerprint of an asset (CIP-14) but is not one.

    Copy the whole fingerprint again: `asset1` and 38 more characters.
    """
    return Refusal(400, "invalid_fingerprint", f"Invalid asset fingerprint: {fault}")


def invalid_policy_id() -> Refusal:
    """A value that is not 56 hex digits.

    Send the 56 hex digits of the policy id.
    """
    return Refusal(400, "invalid_policy_id", "Invalid policy ID format. Expected 56 hex characters")


def fingerprint_instead_of_policy_id() -> Refusal:
    """A fingerprint where a policy id is expected.

    Get the asset by its fingerprint; the answer has its `policy_id`.
    """
    message = "Invalid policy ID format. Expected 56 hex characters; a fingerprint identifies a single asset"
    return Refusal(400, "invalid_policy_id", message)


def asset_not_found() -> Refusal:
    """An asset without an indexed transaction.

    Check policy id and name, or the fingerprint; a new asset appears with its block.
    """
    return Refusal(404, "asset_not_found", "Asset not found")


def invalid_pool_id() -> Refusal:
    """Neither bech32 `pool1…` nor 56 hex digits.

    Send the pool id as `pool1…` or as 56 hex digits.
    """
    return Refusal(400, "invalid_pool_id", "Invalid pool ID format")


def pool_not_found() -> Refusal:
    """A pool without an indexed registration certificate.

    Check the id and the network of the key; a new pool appears with its block.
    """
    return Refusal(404, "pool_not_found", "Pool not found")


def invalid_transaction_hash() -> Refusal:
    """A value that is not 64 hex digits.

    Send the 64 hex digits of the hash.
    """
    return Refusal(400, "invalid_transaction_hash", "Invalid transaction hash format")


def transaction_not_found() -> Refusal:
    """A transaction that is not indexed.

    Retry after some blocks if it was submitted just now; check the network of the key.
    """
    return Refusal(404, "transaction_not_found", "Transaction not found")


def block_not_found() -> Refusal:
    """A block that is not indexed, or that a rollback has removed.

    Retry after some seconds if it is new; check the network of the key.
    """
    return Refusal(404, "block_not_found", "Block not found")


def epoch_not_found() -> Refusal:
    """An epoch without an indexed block.

    Ask for an epoch up to the current one, which is `latest`.
    """
    return Refusal(404, "epoch_not_found", "Epoch not found")


def parameters_not_known() -> Refusal:
    """Protocol parameters that were not read: the index did not follow the node's tip, or the epoch is seconds old.

    Those of `latest` appear within seconds of the epoch's first block; those of past epochs never do.
    """
    return Refusal(404, "parameters_not_known", "Protocol parameters of this epoch are not known")


def genesis_not_known() -> Refusal:
    """Genesis configurations that the index has not read yet.

    Retry after some seconds: they are read as soon as the index has reached the node's tip.
    """
    return Refusal(404, "genesis_not_known", "Genesis configurations are not known yet")


def invalid_script_hash() -> Refusal:
    """A value that is not 56 hex digits.

    Send the 56 hex digits of the hash.
    """
    return Refusal(400, "invalid_script_hash", "Invalid script hash format. Expected 56 hex characters")


def script_not_found() -> Refusal:
    """A script that no indexed transaction has shown, in an output or as a witness.

    A script is known only by its hash until a transaction shows it; check the network of the key.
    """
    return Refusal(404, "script_not_found", "Script not found")


def invalid_datum_hash() -> Refusal:
    """A value that is not 64 hex digits.

    Send the 64 hex digits of the hash.
    """
    return Refusal(400, "invalid_datum_hash", "Invalid datum hash format. Expected 64 hex characters")


def datum_not_found() -> Refusal:
    """A datum that no indexed transaction has shown, in an output or as a witness.

    A datum is known only by its hash until a transaction shows it; check the network of the key.
    """
    return Refusal(404, "datum_not_found", "Datum not found")


# Who may call ---------------------------------------------------------------------------------------------------------


def missing_admin_key() -> Refusal:
    """A missing, repeated or malformed Authorization header on an admin path; expected `Bearer <token>`.

    Send `Authorization: Bearer <admin key>` once.
    """
    return Refusal(401, "missing_admin_key", "Missing or invalid admin API key", {"WWW-Authenticate": "Bearer"})


def invalid_admin_key() -> Refusal:
    """An unknown or revoked admin key, or a key of the other kind: an API key.

    Check the key; ask the operator for a new one if it was revoked.
    """
    return Refusal(403, "invalid_admin_key", "Invalid admin API key")


def permission_denied(permission: str) -> Refusal:
    """An admin key without this permission.

    Ask the operator for an admin key with this permission.
    """
    return Refusal(403, "permission_denied", f"Permission denied: {permission} required")


def missing_api_key() -> Refusal:
    """A missing, repeated or malformed Authorization header on a path for API keys; expected `Bearer <token>`.

    Send `Authorization: Bearer <API key>` once.
    """
    return Refusal(401, "missing_api_key", "Missing or invalid API key", {"WWW-Authenticate": "Bearer"})


def invalid_api_key() -> Refusal:
    """An unknown or revoked API key, or a key of the other kind: an admin key.

    Check the key; issue a new credential if it was revoked.
    """
    return Refusal(403, "invalid_api_key", "Invalid API key")


def invalid_ticket() -> Refusal:
    """A ticket that is malformed or has expired, was issued for another subscription, or whose key has ended.

    Request a new one with the API key.
    """
    return Refusal(403, "invalid_ticket", "Invalid or expired ticket")


def expired_api_key() -> Refusal:
    """A key that has expired, or that a rotation has replaced and whose overlap has ended.

    Use the new key after a rotation, or set a later `expires_at` with `PUT …/limits`.
    """
    return Refusal(403, "expired_api_key", "API key has expired")


def inactive_account() -> Refusal:
    """An API key of a suspended or pending account.

    Reactivate the account.
    """
    return Refusal(403, "account_not_active", "User account is not active")


def rate_limit_exceeded() -> Refusal:
    """A request above the key's limit per minute; `Retry-After` is the time until the next one is admitted.

    Wait for as long as `Retry-After` says.
    """
    return Refusal(429, "rate_limit_exceeded", "Rate limit exceeded")


def quota_exceeded() -> Refusal:
    """A request above the key's quota; `Retry-After` is the time until the next day or month begins.

    Wait for as long as `Retry-After` says, or ask for a larger quota.
    """
    return Refusal(429, "quota_exceeded", "Quota exceeded")


def ip_address_not_allowed() -> Refusal:
    """The caller's IP address is outside the key's `ip_networks`.

    Send the request from one of these IP networks, or have the restriction changed.
    """
    return Refusal(403, "ip_address_not_allowed", "IP address not allowed")


def scope_not_covered(scope: str) -> Refusal:
    """The endpoint belongs to a scope that the key does not have.

    Use a key with this scope; `GET /v1/key` lists the scopes of a key.
    """
    return Refusal(403, "scope_not_covered", f"Key does not cover {scope}")


def no_node(network: str) -> Refusal:
    """Transactions for a network for which the service has no node.

    Submit through another service, or ask the operator to set the node's address.
    """
    return Refusal(
        503, "no_node", f"This service does not accept {network} transactions: it has no node for that network"
    )


def node_not_available(cause: str) -> Refusal:
    """The node can't be reached, is too busy, or did not answer in time. It may have the transaction.

    Send the same transaction again: one that the node already has is accepted again.
    """
    return Refusal(503, "node_not_available", f"Node not available: {cause}", {"Retry-After": "2"})


def no_node_to_read(network: str) -> Refusal:
    """Something that is read from a node, such as the bytes of a block, of a network for which the service has none.

    Read it from another service, or ask the operator to set the node's address.
    """
    return Refusal(503, "no_node", f"This is read from a node, and this service has none for {network}")


def node_not_read(cause: str) -> Refusal:
    """The node can't be read, is too busy, or has another block than the index while a fork takes place.

    Ask again after the seconds that `Retry-After` names.
    """
    return Refusal(503, "node_not_available", f"Node not available: {cause}", {"Retry-After": "2"})


def cbor_not_sent() -> Refusal:
    """The bytes of transactions are read from the node, and its Ogmios runs without the flag that includes them.

    Ask the operator to start Ogmios with `--include-transaction-cbor`. This service needs no restart.
    """
    message = "The node sends no bytes of transactions: its Ogmios must be started with --include-transaction-cbor"
    return Refusal(503, "cbor_not_sent", message)


def invalid_transaction(expected: str) -> Refusal:
    """Bytes that are not the CBOR of a transaction. The message says what was expected.

    Send the CBOR of one whole transaction with its witnesses, and nothing after it.
    """
    message = f"Invalid transaction: its bytes are not the CBOR of a transaction: {expected}"
    return Refusal(400, "invalid_transaction", message)


def transaction_too_large(most_bytes: int) -> Refusal:
    """A transaction of more bytes than the protocol allows.

    Split it into several transactions.
    """
    return Refusal(400, "transaction_too_large", f"Transaction is larger than {most_bytes} bytes")


def foreign_transaction() -> Refusal:
    """A transaction that names mainnet as its network, or pays to or withdraws from mainnet addresses, with the key of
    a test network, or vice versa.

    Use a key of the transaction's network, or addresses of the key's network.
    """
    return Refusal(400, "foreign_transaction", "Transaction does not belong to this network")


def transaction_not_signed() -> Refusal:
    """A transaction without a signature.

    Sign it, and send it with its witnesses.
    """
    return Refusal(400, "transaction_not_signed", "Transaction is not signed")


def transaction_expired(invalid_hereafter: int, slot_no: int) -> Refusal:
    """A transaction whose validity interval has ended.

    No indexed block contains it. Build and sign it again with a later end.
    """
    message = f"Transaction expired at slot {invalid_hereafter}; the chain is at slot {slot_no}"
    return Refusal(400, "transaction_expired", message)


def transaction_not_submitted() -> Refusal:
    """A transaction that no key of the account has submitted within the last seven days (the operator may set another
    number).

    Submit it: if the node or a block already has it, it is accepted again, and followed from then on.
    """
    return Refusal(404, "transaction_not_submitted", "Transaction was not submitted by this account")


def transaction_in_block(block_no: int) -> Refusal:
    """A request to resubmit a transaction that is in a block.

    Nothing needs to be done unless a fork removes that block, which `GET /v1/tx/submitted/{hash}` reports.
    """
    return Refusal(409, "transaction_in_block", f"Transaction is in block {block_no}")


def signatures_refused(said: str) -> Refusal:
    """Signatures that are missing or invalid.

    Sign the body with the keys of all inputs, withdrawals, certificates and policies, after the last change to it.
    """
    return Refusal(400, "signatures_refused", f"{_BY_NODE}: {said}")


def inputs_not_unspent(said: str) -> Refusal:
    """An input or a reference input that does not exist, or is spent.

    Build the transaction again from unspent outputs. The message names the inputs that are not unspent.
    """
    return Refusal(400, "inputs_not_unspent", f"{_BY_NODE}: {said}")


def outside_validity_interval(said: str) -> Refusal:
    """A validity interval that does not contain the slot of the node's ledger.

    Wait until it begins or, if it has ended, build the transaction again.
    """
    return Refusal(400, "outside_validity_interval", f"{_BY_NODE}: {said}")


def fee_too_small(said: str) -> Refusal:
    """A fee below the minimum.

    Pay at least the fee that the message names.
    """
    return Refusal(400, "fee_too_small", f"{_BY_NODE}: {said}")


def value_not_conserved(said: str) -> Refusal:
    """A transaction that consumes a different value than it produces.

    Balance inputs, withdrawals and mints with outputs, deposits and the fee.
    """
    return Refusal(400, "value_not_conserved", f"{_BY_NODE}: {said}")


def transaction_refused(said: str) -> Refusal:
    """A transaction that breaks another rule of the ledger.

    Correct the fault that the message names. The number in it is Ogmios' code for the rule.
    """
    return Refusal(400, "transaction_refused", f"{_BY_NODE}: {said}")


def evaluation_failed(said: str) -> Refusal:
    """A script that fails, or a transaction that the node can't evaluate.

    Correct the fault that the message names. The number in it is Ogmios' code.
    """
    return Refusal(400, "evaluation_failed", f"The node can't evaluate the transaction: {said}")


def subscription_not_found() -> Refusal:
    """A subscription that does not exist, was deleted, or belongs to another credential.

    Check the id; a subscription belongs to the credential whose key created it.
    """
    return Refusal(404, "subscription_not_found", "Subscription not found")


def too_many_subscriptions(most: int) -> Refusal:
    """A credential that already has as many subscriptions as it may have.

    Delete one that is not needed any more, or add its subjects to another one.
    """
    return Refusal(409, "too_many_subscriptions", f"A credential may have at most {most} subscriptions")


def too_many_subjects(most: int) -> Refusal:
    """A subscription would have more subjects than it may have.

    Remove subjects, or create another subscription.
    """
    return Refusal(409, "too_many_subjects", f"A subscription may have at most {most} subjects")


def events_not_available() -> Refusal:
    """A network whose blocks are not followed for events yet.

    Retry later; the operator must run the usage aggregator.
    """
    return Refusal(503, "events_not_available", "Events of this network are not available yet")


def events_not_kept(first: int) -> Refusal:
    """Events that are too old to be kept.

    Load the present state, and continue after its block (`after_block`).
    """
    return Refusal(410, "events_not_kept", f"Events before number {first} are no longer kept")


def block_not_followed() -> Refusal:
    """A block that is no position of the log: it is unknown, or precedes it, or subjects were added since.

    Load the present state again, and continue after its block.
    """
    return Refusal(409, "block_not_followed", "The log has no position for this block: load the state again")


def webhook_not_found() -> Refusal:
    """A subscription without a webhook.

    Set one with PUT.
    """
    return Refusal(404, "webhook_not_found", "The subscription has no webhook")


def webhook_ended() -> Refusal:
    """A webhook whose endpoint has answered 410 Gone: it wants no more events.

    Set its URL again with PUT, which makes it active.
    """
    return Refusal(409, "webhook_ended", "The webhook has ended, since its endpoint has answered 410")


def usage_not_recorded() -> Refusal:
    """A request that can't be counted: the disk of the spools is full, or too many records wait in this process.

    Retry with growing pauses.
    """
    return Refusal(503, "usage_not_recorded", "Usage cannot be recorded")


# Partner administration -----------------------------------------------------------------------------------------------


def user_account_not_found() -> Refusal:
    """An account that does not exist or belongs to another admin key.

    Check the id; an account belongs to the admin key that created it.
    """
    return Refusal(404, "user_account_not_found", "User account not found")


def credential_not_found() -> Refusal:
    """A credential that does not exist or belongs to another admin key.

    Check the id; a credential belongs to the admin key that created it.
    """
    return Refusal(404, "credential_not_found", "Credential not found")


def credential_not_found_or_revoked() -> Refusal:
    """A credential that does not exist, is revoked, or belongs to another admin key.

    A revoked credential can't change: issue a new one.
    """
    return Refusal(404, "credential_not_found", "Credential not found or already revoked")


def admin_key_not_found_or_revoked() -> Refusal:
    """An admin key that does not exist or is revoked.

    Check the id in the list of admin keys.
    """
    return Refusal(404, "admin_key_not_found", "Admin key not found or already revoked")


def bootstrap_owns_no_users() -> Refusal:
    """An attempt to create or change users with the bootstrap key.

    Issue an admin key, and use that.
    """
    return Refusal(
        400, "bootstrap_key_refused", "The bootstrap admin key cannot manage users: create an admin key first"
    )


def bootstrap_owns_no_credentials() -> Refusal:
    """An attempt to create credentials with the bootstrap key.

    Issue an admin key, and use that.
    """
    return Refusal(
        400, "bootstrap_key_refused", "The bootstrap admin key cannot manage credentials: create an admin key first"
    )


def bootstrap_key_not_revocable() -> Refusal:
    """An attempt to revoke the bootstrap key, which is a setting.

    Change the service's setting to replace it.
    """
    return Refusal(400, "bootstrap_key_refused", "The bootstrap admin key cannot be revoked")


def too_many_concurrent_requests(requests: str) -> Refusal:
    """A request that waited too long for its turn, behind those of the same key or of other keys.

    Send fewer requests at a time; wait for as long as `Retry-After` says.
    """
    message = f"Too many {requests} are in progress: try again later"
    return Refusal(503, "too_many_concurrent_requests", message, {"Retry-After": "10"})


def external_id_in_use() -> Refusal:
    """An `external_id` that another account of the admin key already has.

    Choose another one, or find the account by its `external_id`.
    """
    return Refusal(409, "external_id_in_use", "external_id already in use")


def invalid_idempotency_key() -> Refusal:
    """An empty, too long, repeated or non-ASCII `Idempotency-Key`.

    Send the header once, with 1 to 255 printable ASCII characters such as a UUID.
    """
    message = "Idempotency-Key must be sent once, with 1 to 255 printable ASCII characters"
    return Refusal(400, "invalid_idempotency_key", message)


def idempotency_key_reused() -> Refusal:
    """An `Idempotency-Key` that a request with another body on the same path has used within the last 24 hours.

    Send the same body to repeat that request, or a new key for a new one.
    """
    return Refusal(409, "idempotency_key_reused", "Idempotency-Key was used with another body")


def key_not_shown_again(issued_to: str) -> Refusal:
    """A repeated request whose answer contained a new key. It has been executed once, and the key is not stored.

    If that answer was lost, rotate the credential (`POST /v1/admin/credentials/{id}/rotate`) or the webhook's secret
    with a new `Idempotency-Key`. If the answer contained an admin key, revoke it and create another one.
    """
    message = f"Already executed: the key of {issued_to} is not shown again"
    return Refusal(409, "key_not_shown_again", message, _REPLAYED)


def answer_erased() -> Refusal:
    """A repeated request about a user account that has been deleted since.

    Nothing is left to do: the request has been executed, and its answer was erased with the account.
    """
    return Refusal(409, "answer_erased", "Already executed: the answer was erased with its account", _REPLAYED)


def nothing_to_update() -> Refusal:
    """An update of a credential without a field to change.

    Send `name` or `description`.
    """
    return Refusal(400, "nothing_to_update", "At least one field (name or description) must be provided")


def no_limit_to_change() -> Refusal:
    """A change of limits without a field to change.

    Send `rate_limit_per_minute`, `expires_at` or `quota`.
    """
    message = "At least one field (rate_limit_per_minute, expires_at or quota) must be provided"
    return Refusal(400, "nothing_to_update", message)


def no_restriction_to_change() -> Refusal:
    """A change of restrictions without a field to change.

    Send `ip_networks` or `scopes`.
    """
    return Refusal(400, "nothing_to_update", "At least one field (ip_networks or scopes) must be provided")


def expiry_not_in_future() -> Refusal:
    """An `expires_at` that is not in the future.

    Send a later time, or none.
    """
    return Refusal(400, "expiry_not_in_future", "expires_at must be in the future")


def from_after_to() -> Refusal:
    """A period of the audit log that ends before it starts.

    Swap the two dates, or omit one.
    """
    return Refusal(400, "dates_reversed", "from must not be after to")


def dates_reversed() -> Refusal:
    """A period that ends before it starts.

    Swap the two dates, or omit one.
    """
    return Refusal(400, "dates_reversed", "start_date must not be after end_date")
