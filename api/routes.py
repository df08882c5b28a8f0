"""THE table: every method and path, who answers, and who may call. Start reading here.

Question, body and answer of a route are those of its handler's annotations (`route.py`).
"""

from http import HTTPStatus

from api import docs, errors, health, metrics, openapi
from api.admin import admin_keys, audit, credentials, usage, users
from api.chain import assets, pools, transactions
from api.route import Route

ROUTES = (
    # Transactions ----------------------------------------------------------------------------------------------------
    Route(
        "GET",
        "/v1/tx/address/{address}",
        transactions.detailed,
        "api key",
        errors=(errors.invalid_address, errors.foreign_address),
    ),
    Route(
        "GET",
        "/v1/tx/history/{address}",
        transactions.history,
        "api key",
        errors=(errors.invalid_address, errors.foreign_address),
    ),
    Route(
        "GET",
        "/v1/tx/hash/{hash}",
        transactions.by_hash,
        "api key",
        errors=(errors.transaction_not_found,),
    ),
    # Assets ----------------------------------------------------------------------------------------------------------
    Route("GET", "/v1/assets/{asset}", assets.info, "api key", errors=(errors.asset_not_found,)),
    Route("GET", "/v1/assets/policy/{policyId}", assets.of_policy, "api key"),
    Route("GET", "/v1/assets/policy/{policyId}/holders", assets.policy_holders, "api key"),
    Route("GET", "/v1/assets/{asset}/holders", assets.holders, "api key", errors=(errors.asset_not_found,)),
    Route("GET", "/v1/assets/{asset}/transactions", assets.transactions, "api key", errors=(errors.asset_not_found,)),
    Route("GET", "/v1/assets/{asset}/mints", assets.mints, "api key", errors=(errors.asset_not_found,)),
    # Stake pools -----------------------------------------------------------------------------------------------------
    Route("GET", "/v1/pools/{poolId}", pools.info, "api key", errors=(errors.pool_not_found,)),
    Route(
        "GET",
        "/v1/pools/{poolId}/delegators/list",
        pools.delegators,
        "api key",
        errors=(errors.pool_not_found,),
    ),
    # User accounts ---------------------------------------------------------------------------------------------------
    Route(
        "POST",
        "/v1/admin/users",
        users.create,
        "manage_users",
        status=HTTPStatus.CREATED,
        errors=(errors.bootstrap_owns_no_users, errors.external_id_in_use),
    ),
    Route("GET", "/v1/admin/users", users.listed, "manage_users"),
    Route("GET", "/v1/admin/users/{id}", users.read, "manage_users", errors=(errors.user_account_not_found,)),
    Route(
        "GET",
        "/v1/admin/users/by-external-id/{external_id}",
        users.read_external,
        "manage_users",
        errors=(errors.user_account_not_found,),
    ),
    Route(
        "PATCH",
        "/v1/admin/users/{id}",
        users.update,
        "manage_users",
        errors=(errors.bootstrap_owns_no_users, errors.user_account_not_found, errors.external_id_in_use),
    ),
    Route(
        "POST",
        "/v1/admin/users/{id}/suspend",
        users.suspend,
        "manage_users",
        errors=(errors.bootstrap_owns_no_users, errors.user_account_not_found),
    ),
    Route(
        "POST",
        "/v1/admin/users/{id}/reactivate",
        users.reactivate,
        "manage_users",
        errors=(errors.bootstrap_owns_no_users, errors.user_account_not_found),
    ),
    Route(
        "GET",
        "/v1/admin/users/{id}/usage",
        usage.of_user,
        "view_usage",
        errors=(errors.dates_reversed, errors.user_account_not_found),
    ),
    Route("GET", "/v1/admin/users/usage/summary", usage.of_users, "view_usage", errors=(errors.dates_reversed,)),
    # Credentials -----------------------------------------------------------------------------------------------------
    Route(
        "POST",
        "/v1/admin/credentials",
        credentials.create,
        "manage_credentials",
        status=HTTPStatus.CREATED,
        errors=(errors.bootstrap_owns_no_credentials, errors.not_in_the_future, errors.user_account_not_found),
    ),
    Route("GET", "/v1/admin/credentials", credentials.listed, "manage_credentials"),
    Route(
        "GET",
        "/v1/admin/credentials/{id}",
        credentials.read,
        "manage_credentials",
        errors=(errors.credential_not_found,),
    ),
    Route(
        "PATCH",
        "/v1/admin/credentials/{id}",
        credentials.update,
        "manage_credentials",
        errors=(errors.nothing_to_update, errors.credential_not_found_or_revoked),
    ),
    Route(
        "DELETE",
        "/v1/admin/credentials/{id}",
        credentials.revoke,
        "manage_credentials",
        errors=(errors.credential_not_found_or_revoked,),
    ),
    # Usage, audit log, admin keys ------------------------------------------------------------------------------------
    Route("GET", "/v1/admin/usage", usage.of_credentials, "view_usage", errors=(errors.dates_reversed,)),
    Route(
        "GET",
        "/v1/admin/usage/{id}",
        usage.of_credential,
        "view_usage",
        errors=(errors.dates_reversed, errors.credential_not_found),
    ),
    Route("GET", "/v1/admin/audit-logs", audit.listed, "view_audit_logs"),
    Route("POST", "/v1/admin/admin-keys", admin_keys.create, "bootstrap", status=HTTPStatus.CREATED),
    Route("GET", "/v1/admin/admin-keys", admin_keys.listed, "bootstrap"),
    Route(
        "DELETE",
        "/v1/admin/admin-keys/{id}",
        admin_keys.revoke,
        "bootstrap",
        errors=(errors.bootstrap_stays, errors.admin_key_not_found_or_revoked),
    ),
    # The service itself ----------------------------------------------------------------------------------------------
    Route("GET", "/health", health.health, "open"),
    Route("GET", "/ready", health.ready, "open"),
    Route("GET", "/metrics", metrics.metrics, "open", media_type="text/plain"),
    Route("GET", "/openapi.json", openapi.openapi, "open"),
    Route("GET", "/docs", docs.page, "open", media_type="text/html"),
    Route("GET", "/docs/{file}", docs.file, "open", media_type="*/*"),
)
