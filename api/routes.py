"""The table of routes: method, path, handler, who may call, and refusals. Start reading here.

`route.py` has the words in which it is written. The name of a handler is that of its operation, and its annotations
declare question, body and answer.
"""

from functools import partial
from http import HTTPStatus

from api import errors
from api.admin import admin_keys, audit, breakdown, credentials, limits, usage, users
from api.admin import subscriptions as admin_subscriptions
from api.blockfrost.routes import FACADE
from api.chain import (
    accounts,
    addresses,
    assets,
    block_bytes,
    blocks,
    bulk,
    contracts,
    epochs,
    exports,
    labels,
    network,
    own_key,
    payment_credentials,
    pool_metadata,
    pools,
    script_redeemers,
    submission,
    totals,
    transactions,
    utxos,
)
from api.events import stream, subscriptions, webhooks
from api.operate import health, metrics, status
from api.reference import docs, openapi
from api.repeats.caching import METADATA_WARNING, SNAPSHOT_BLOCK
from api.route import REQUESTS_COUNTED, Refusing, Route, admin, anyone, delete, get, ordered, post, put

_OF_A_USER = {"status": "POST /v1/admin/users/{id}/suspend"}
_OF_A_CREDENTIAL = {
    "rate_limit_per_minute": "PUT /v1/admin/credentials/{id}/limits",
    "expires_at": "PUT /v1/admin/credentials/{id}/limits",
    "quota": "PUT /v1/admin/credentials/{id}/limits",
    "ip_networks": "PUT /v1/admin/credentials/{id}/restrictions",
    "scopes": "PUT /v1/admin/credentials/{id}/restrictions",
    "revoked": "DELETE /v1/admin/credentials/{id}",
    "api_key": "POST /v1/admin/credentials/{id}/rotate",
}

# The refusals of a request about an address, an asset and so on.
_ADDRESS = (errors.invalid_address, errors.foreign_address)
_ACCOUNT = (errors.invalid_stake_address, errors.foreign_stake_address)
_PAYMENT = errors.invalid_payment_credential
_FINGERPRINT = partial(errors.invalid_fingerprint, "its checksum is wrong, so at least one character is")
_ASSET = (errors.asset_without_dot, _FINGERPRINT, errors.asset_not_found)
_POLICY, _SUBMITTED = errors.fingerprint_instead_of_policy_id, errors.transaction_not_submitted
_BLOCK, _EPOCH, _POOL = errors.block_not_found, errors.epoch_not_found, errors.pool_not_found
_EVALUATION: tuple[Refusing, ...] = (
    *submission.EVALUATION,
    partial(errors.evaluation_failed, "Some scripts failed. (3010)"),
)
_RESUBMISSION: tuple[Refusing, ...] = (
    _SUBMITTED,
    partial(errors.transaction_in_block, 2_846_511),
    *submission.RESUBMISSION,
)
_NOT_READY = partial(errors.not_ready, "nothing is indexed for preview yet")
_TOO_LONG, _TOO_MANY_IDS = partial(errors.answer_too_large, "limit", 25), partial(errors.answer_too_large, "ids", 12)
_USER, _OWN_USER = errors.user_account_not_found, (errors.bootstrap_owns_no_users, errors.user_account_not_found)
_CREDENTIAL, _LIVE = errors.credential_not_found, errors.credential_not_found_or_revoked
_DATES = errors.dates_reversed
_SUBSCRIPTION, _NOT_KEPT = errors.subscription_not_found, partial(errors.events_not_kept, 1)
_WEBHOOK: tuple[Refusing, ...] = (_SUBSCRIPTION, errors.webhook_not_found)
_SUBJECTS: tuple[Refusing, ...] = (
    *_ADDRESS,
    *_ACCOUNT,
    _PAYMENT,
    errors.invalid_asset,
    errors.asset_without_dot,
    _FINGERPRINT,
    errors.invalid_policy_id,
    errors.invalid_pool_id,
    partial(errors.too_many_subjects, 100_000),
)

# What several lists are sorted by.
_QUANTITY, _TOTAL = "quantity, ties in a fixed order", "total quantity, ties in a fixed order"
_OUTPUT, _NUMBER = "slot, position in the block and index", "number in the index (roughly the order of first use)"

_CBOR = "application/cbor"
_csv = partial(get, media_types=exports.MEDIA_TYPES, headers=(SNAPSHOT_BLOCK,))
_bulk = partial(post, headers=(REQUESTS_COUNTED,))
_html = partial(anyone, media_types=("text/html",))
_users, _credentials = partial(admin, "manage_users"), partial(admin, "manage_credentials")
_usage, _audit, _bootstrap = (
    partial(admin, "view_usage"),
    partial(admin, "view_audit_logs"),
    partial(admin, "bootstrap"),
)

ROUTES: tuple[Route, ...] = (
    # Transactions ----------------------------------------------------------------------------------------------------
    ordered("/v1/tx/address/{address}", transactions.list_transactions, "transactions", *_ADDRESS, _TOO_LONG),
    ordered("/v1/tx/history/{address}", transactions.list_transaction_history, "transactions", *_ADDRESS),
    get("/v1/tx/hash/{hash}", transactions.get_transaction, "transactions", errors.transaction_not_found),
    get(
        "/v1/tx/hash/{hash}/cbor",
        block_bytes.get_transaction_cbor,
        "transactions",
        errors.transaction_not_found,
        *block_bytes.REFUSALS,
    ),
    post("/v1/tx/evaluate", submission.evaluate_transaction, "submit", *_EVALUATION, raw_media_type=_CBOR),
    post("/v1/tx/submit", submission.submit_transaction, "submit", *submission.SUBMISSION, raw_media_type=_CBOR),
    get("/v1/tx/submitted/{hash}", submission.get_submitted_transaction, "submit", _SUBMITTED),
    post("/v1/tx/submitted/{hash}/resubmit", submission.resubmit_transaction, "submit", *_RESUBMISSION),
    # Metadata --------------------------------------------------------------------------------------------------------
    ordered("/v1/metadata/labels", labels.list_metadata_labels, "transactions", by="label"),
    ordered("/v1/metadata/labels/{label}", labels.list_labelled_transactions, "transactions", _TOO_LONG),
    # Scripts and datums ----------------------------------------------------------------------------------------------
    get("/v1/scripts/{scriptHash}", contracts.get_script, "transactions", errors.script_not_found),
    ordered(
        "/v1/scripts/{scriptHash}/redeemers",
        script_redeemers.list_script_redeemers,
        "transactions",
        errors.script_not_found,
        *block_bytes.REFUSALS,
    ),
    get("/v1/datums/{datumHash}", contracts.get_datum, "transactions", errors.datum_not_found),
    # Assets ----------------------------------------------------------------------------------------------------------
    get("/v1/assets/{asset}", assets.get_asset, "assets", *_ASSET, headers=(METADATA_WARNING,)),
    ordered(
        "/v1/assets/policy/{policyId}", assets.list_policy_assets, "assets", _POLICY, by="total supply, then asset name"
    ),
    ordered("/v1/assets/policy/{policyId}/holders", assets.list_policy_holders, "assets", _POLICY, by=_TOTAL),
    ordered("/v1/assets/{asset}/holders", assets.list_asset_holders, "assets", *_ASSET, by=_QUANTITY),
    ordered("/v1/assets/{asset}/transactions", assets.list_asset_transactions, "assets", *_ASSET),
    ordered("/v1/assets/{asset}/mints", assets.list_asset_mints, "assets", *_ASSET),
    ordered(
        "/v1/assets/policy/{policyId}/holders/accounts",
        assets.list_policy_account_holders,
        "assets",
        _POLICY,
        by=_TOTAL,
    ),
    ordered("/v1/assets/{asset}/holders/accounts", assets.list_asset_account_holders, "assets", *_ASSET, by=_QUANTITY),
    _csv("/v1/assets/{asset}/holders.csv", exports.export_asset_holders, "assets", *_ASSET),
    _csv("/v1/assets/{asset}/holders/accounts.csv", exports.export_asset_account_holders, "assets", *_ASSET),
    _csv("/v1/assets/policy/{policyId}/holders.csv", exports.export_policy_holders, "assets", _POLICY),
    _csv("/v1/assets/policy/{policyId}/holders/accounts.csv", exports.export_policy_account_holders, "assets", _POLICY),
    # Addresses and stake accounts ----------------------------------------------------------------------------------
    get("/v1/addresses/{address}", addresses.get_address, "accounts", *_ADDRESS),
    ordered(
        "/v1/addresses/{address}/utxos",
        addresses.list_address_utxos,
        "accounts",
        *_ADDRESS,
        *_ASSET,
        _TOO_LONG,
        by=_OUTPUT,
    ),
    ordered("/v1/addresses/{address}/assets", addresses.list_address_assets, "accounts", *_ADDRESS, by=_NUMBER),
    get("/v1/addresses/{address}/totals", totals.get_address_totals, "accounts", *_ADDRESS),
    get("/v1/accounts/{stake_address}", accounts.get_account, "accounts", *_ACCOUNT),
    get("/v1/accounts/{stake_address}/totals", totals.get_account_totals, "accounts", *_ACCOUNT),
    ordered(
        "/v1/accounts/{stake_address}/addresses", accounts.list_account_addresses, "accounts", *_ACCOUNT, by="first use"
    ),
    ordered(
        "/v1/accounts/{stake_address}/utxos",
        accounts.list_account_utxos,
        "accounts",
        *_ACCOUNT,
        *_ASSET,
        _TOO_LONG,
        by=_OUTPUT,
    ),
    ordered("/v1/accounts/{stake_address}/assets", accounts.list_account_assets, "accounts", *_ACCOUNT, by=_NUMBER),
    ordered(
        "/v1/accounts/{stake_address}/transactions", accounts.list_account_transaction_history, "accounts", *_ACCOUNT
    ),
    ordered(
        "/v1/accounts/{stake_address}/transactions/detailed",
        accounts.list_account_transactions,
        "accounts",
        *_ACCOUNT,
        _TOO_LONG,
    ),
    ordered("/v1/accounts/{stake_address}/delegations", accounts.list_account_delegations, "accounts", *_ACCOUNT),
    ordered("/v1/accounts/{stake_address}/withdrawals", accounts.list_account_withdrawals, "accounts", *_ACCOUNT),
    get(
        "/v1/payment-credentials/{payment_credential}", payment_credentials.get_payment_credential, "accounts", _PAYMENT
    ),
    get(
        "/v1/payment-credentials/{payment_credential}/totals",
        totals.get_payment_credential_totals,
        "accounts",
        _PAYMENT,
    ),
    ordered(
        "/v1/payment-credentials/{payment_credential}/utxos",
        payment_credentials.list_payment_credential_utxos,
        "accounts",
        _PAYMENT,
        *_ASSET,
        _TOO_LONG,
        by=_OUTPUT,
    ),
    ordered(
        "/v1/payment-credentials/{payment_credential}/assets",
        payment_credentials.list_payment_credential_assets,
        "accounts",
        _PAYMENT,
        by=_NUMBER,
    ),
    ordered(
        "/v1/payment-credentials/{payment_credential}/transactions",
        payment_credentials.list_payment_credential_transaction_history,
        "accounts",
        _PAYMENT,
    ),
    ordered(
        "/v1/payment-credentials/{payment_credential}/transactions/detailed",
        payment_credentials.list_payment_credential_transactions,
        "accounts",
        _PAYMENT,
        _TOO_LONG,
    ),
    get("/v1/utxos/{tx_hash}/{index}", utxos.get_utxo, "accounts", errors.output_not_found),
    # Several at once -------------------------------------------------------------------------------------------------
    _bulk("/v1/bulk/addresses", bulk.get_addresses, "accounts", *_ADDRESS, _TOO_MANY_IDS),
    _bulk("/v1/bulk/accounts", bulk.get_accounts, "accounts", *_ACCOUNT, _TOO_MANY_IDS),
    _bulk(
        "/v1/bulk/transactions", bulk.get_transactions, "transactions", errors.invalid_transaction_hash, _TOO_MANY_IDS
    ),
    _bulk("/v1/bulk/assets", bulk.get_assets, "assets", errors.invalid_asset, *_ASSET[:-1], _TOO_MANY_IDS),
    _bulk("/v1/bulk/utxos", bulk.get_utxos, "accounts", errors.invalid_output_reference, _TOO_MANY_IDS),
    # Stake pools -----------------------------------------------------------------------------------------------------
    get("/v1/pools/{poolId}", pools.get_pool, "pools", _POOL),
    get("/v1/pools/{poolId}/metadata", pool_metadata.get_pool_metadata, "pools", _POOL),
    get("/v1/pools/{poolId}/delegators/list", pools.list_pool_delegators, "pools", _POOL, headers=(SNAPSHOT_BLOCK,)),
    # Blocks and epochs -----------------------------------------------------------------------------------------------
    get("/v1/blocks/{block}", blocks.get_block, "network", _BLOCK),
    ordered(
        "/v1/blocks/{block}/transactions", blocks.list_block_transactions, "network", _BLOCK, by="position in the block"
    ),
    ordered(
        "/v1/blocks/{block}/transactions/cbor",
        block_bytes.list_block_transaction_cbor,
        "network",
        _BLOCK,
        *block_bytes.REFUSALS,
        by="position in the block",
    ),
    get("/v1/epochs/{epoch}", epochs.get_epoch, "network", _EPOCH),
    get("/v1/epochs/{epoch}/parameters", epochs.get_epoch_parameters, "network", _EPOCH, errors.parameters_not_known),
    # The network -----------------------------------------------------------------------------------------------------
    get("/v1/network", network.get_network, "network"),
    get("/v1/genesis", network.get_genesis, "network", errors.genesis_not_known),
    # The API key itself ----------------------------------------------------------------------------------------------
    get("/v1/key", own_key.get_own_key, ""),
    # Events ----------------------------------------------------------------------------------------------------------
    post(
        "/v1/subscriptions",
        subscriptions.create_subscription,
        "events",
        *_SUBJECTS,
        partial(errors.too_many_subscriptions, 100),
        errors.events_not_available,
        status=HTTPStatus.CREATED,
    ),
    get("/v1/subscriptions", subscriptions.list_subscriptions, "events"),
    get("/v1/subscriptions/{id}", subscriptions.get_subscription, "events", _SUBSCRIPTION),
    delete("/v1/subscriptions/{id}", subscriptions.delete_subscription, "events", _SUBSCRIPTION),
    post(
        "/v1/subscriptions/{id}/begin",
        subscriptions.begin_subscription,
        "events",
        _SUBSCRIPTION,
        errors.events_not_available,
    ),
    get("/v1/subscriptions/{id}/subjects", subscriptions.list_subscription_subjects, "events", _SUBSCRIPTION),
    post(
        "/v1/subscriptions/{id}/subjects",
        subscriptions.add_subscription_subjects,
        "events",
        *_SUBJECTS,
        _SUBSCRIPTION,
    ),
    post(
        "/v1/subscriptions/{id}/subjects/remove",
        subscriptions.remove_subscription_subjects,
        "events",
        *_SUBJECTS[:-1],
        _SUBSCRIPTION,
    ),
    get(
        "/v1/subscriptions/{id}/events",
        subscriptions.list_events,
        "events",
        _SUBSCRIPTION,
        _NOT_KEPT,
        errors.block_not_followed,
    ),
    get(
        "/v1/subscriptions/{id}/events/stream",
        stream.stream_events,
        "events",
        _SUBSCRIPTION,
        errors.invalid_ticket,
        _NOT_KEPT,
        errors.block_not_followed,
        media_types=(stream.MEDIA_TYPE,),
    ),
    post("/v1/subscriptions/{id}/tickets", stream.create_ticket, "events", _SUBSCRIPTION, status=HTTPStatus.CREATED),
    put("/v1/subscriptions/{id}/webhook", webhooks.set_webhook, "events", _SUBSCRIPTION, _NOT_KEPT),
    get("/v1/subscriptions/{id}/webhook", webhooks.get_webhook, "events", *_WEBHOOK),
    delete("/v1/subscriptions/{id}/webhook", webhooks.delete_webhook, "events", *_WEBHOOK),
    post("/v1/subscriptions/{id}/webhook/secret", webhooks.rotate_webhook_secret, "events", *_WEBHOOK),
    post(
        "/v1/subscriptions/{id}/webhook/replay",
        webhooks.replay_webhook,
        "events",
        *_WEBHOOK,
        errors.webhook_ended,
        _NOT_KEPT,
    ),
    post("/v1/subscriptions/{id}/webhook/pause", webhooks.pause_webhook, "events", *_WEBHOOK, errors.webhook_ended),
    post("/v1/subscriptions/{id}/webhook/resume", webhooks.resume_webhook, "events", *_WEBHOOK, errors.webhook_ended),
    # User accounts ---------------------------------------------------------------------------------------------------
    _users(
        "POST",
        "/v1/admin/users",
        users.create_user,
        errors.bootstrap_owns_no_users,
        errors.external_id_in_use,
        set_by=_OF_A_USER,
        status=HTTPStatus.CREATED,
    ),
    _users("GET", "/v1/admin/users", users.list_users),
    _users("GET", "/v1/admin/users/{id}", users.get_user, _USER),
    _users("GET", "/v1/admin/users/by-external-id/{external_id}", users.get_user_by_external_id, _USER),
    _users(
        "PATCH", "/v1/admin/users/{id}", users.update_user, *_OWN_USER, errors.external_id_in_use, set_by=_OF_A_USER
    ),
    _users("DELETE", "/v1/admin/users/{id}", users.delete_user, *_OWN_USER),
    _users("POST", "/v1/admin/users/{id}/suspend", users.suspend_user, *_OWN_USER),
    _users("POST", "/v1/admin/users/{id}/reactivate", users.reactivate_user, *_OWN_USER),
    _usage("GET", "/v1/admin/users/{id}/usage", usage.get_user_usage, _DATES, _USER),
    _usage("GET", "/v1/admin/users/usage/summary", usage.list_usage_by_user, _DATES),
    # Credentials -----------------------------------------------------------------------------------------------------
    _credentials(
        "POST",
        "/v1/admin/credentials",
        credentials.create_credential,
        errors.bootstrap_owns_no_credentials,
        errors.expiry_not_in_future,
        _USER,
        set_by=_OF_A_CREDENTIAL,
        status=HTTPStatus.CREATED,
    ),
    _credentials("GET", "/v1/admin/credentials", credentials.list_credentials),
    _credentials("GET", "/v1/admin/credentials/{id}", credentials.get_credential, _CREDENTIAL),
    _credentials(
        "PATCH",
        "/v1/admin/credentials/{id}",
        credentials.update_credential,
        errors.nothing_to_update,
        _LIVE,
        set_by=_OF_A_CREDENTIAL,
    ),
    _credentials("DELETE", "/v1/admin/credentials/{id}", credentials.revoke_credential, _LIVE),
    _credentials("POST", "/v1/admin/credentials/{id}/rotate", credentials.rotate_credential, _LIVE),
    _credentials("GET", "/v1/admin/credentials/{id}/limits", limits.get_credential_limits, _CREDENTIAL),
    _credentials(
        "PUT",
        "/v1/admin/credentials/{id}/limits",
        limits.update_credential_limits,
        errors.no_limit_to_change,
        errors.expiry_not_in_future,
        _LIVE,
    ),
    _credentials("GET", "/v1/admin/credentials/{id}/restrictions", limits.get_credential_restrictions, _CREDENTIAL),
    _credentials(
        "PUT",
        "/v1/admin/credentials/{id}/restrictions",
        limits.update_credential_restrictions,
        errors.no_restriction_to_change,
        _LIVE,
    ),
    _credentials(
        "GET",
        "/v1/admin/credentials/{id}/subscriptions",
        admin_subscriptions.list_credential_subscriptions,
        _CREDENTIAL,
    ),
    _credentials(
        "GET", "/v1/admin/credentials/{id}/webhooks", admin_subscriptions.list_credential_webhooks, _CREDENTIAL
    ),
    # Usage, audit log, admin keys ------------------------------------------------------------------------------------
    _usage("GET", "/v1/admin/usage", usage.list_usage_by_credential, _DATES),
    _usage("GET", "/v1/admin/usage/{id}", usage.get_credential_usage, _DATES, _CREDENTIAL),
    _usage("GET", "/v1/admin/usage/{id}/breakdown", breakdown.list_credential_usage_breakdown, _DATES, _CREDENTIAL),
    _usage("GET", "/v1/admin/users/{id}/usage/breakdown", breakdown.list_user_usage_breakdown, _DATES, _USER),
    _usage("GET", "/v1/admin/usage/export", breakdown.export_usage, _DATES, media_types=breakdown.MEDIA_TYPES),
    _audit("GET", "/v1/admin/audit-logs", audit.list_audit_logs, errors.from_after_to),
    _bootstrap("POST", "/v1/admin/admin-keys", admin_keys.create_admin_key, status=HTTPStatus.CREATED),
    _bootstrap("GET", "/v1/admin/admin-keys", admin_keys.list_admin_keys),
    _bootstrap(
        "DELETE",
        "/v1/admin/admin-keys/{id}",
        admin_keys.revoke_admin_key,
        errors.bootstrap_key_not_revocable,
        errors.admin_key_not_found_or_revoked,
    ),
    # The service itself ----------------------------------------------------------------------------------------------
    _html("/", docs.get_home),
    anyone("/health", health.get_health),
    anyone("/ready", health.get_readiness, partial(errors.not_ready, "no network is available yet")),
    anyone("/ready/{network}", health.get_network_readiness, errors.not_found, _NOT_READY),
    anyone("/v1/status", status.get_status),
    _html("/status", docs.get_status_page),
    _html("/console", docs.get_console_page),
    anyone("/metrics", metrics.get_metrics, media_types=("text/plain",)),
    anyone("/openapi.json", openapi.handler(lambda: ROUTES)),
    _html("/docs", docs.get_docs),
    anyone("/docs/{file}", docs.get_docs_file, media_types=docs.MEDIA_TYPES),
)

EVERY_ROUTE = (*ROUTES, *FACADE)
"""With the routes in Blockfrost's shape, which /openapi.json and the clients leave out."""
