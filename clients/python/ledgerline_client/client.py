"""The synchronous client: one method for each operation.

Made by `python -m clients.generate` from the table of routes; do not edit.
"""

from collections.abc import Iterator
from typing import Any, Literal

from ledgerline_client import types
from ledgerline_client.http import UNSET, Http, Unset, new_idempotency_key


class Ledgerline(Http):
    """A Ledgerline service. `with Ledgerline(url, api_key=..., admin_key=...) as service`."""

    def list_transactions(
        self,
        address: str,
        *,
        offset: int | None = None,
        from_slot: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
        group_by_policy: bool | None = None,
    ) -> types.TransactionPage:
        """List the transactions of an address with their inputs and outputs."""
        answer: types.TransactionPage = self.call(
            "GET",
            "/v1/tx/address/{address}",
            {"address": address},
            {"offset": offset, "fromSlot": from_slot, "order": order, "limit": limit, "groupByPolicy": group_by_policy},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_transactions(
        self,
        address: str,
        *,
        from_slot: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
        group_by_policy: bool | None = None,
    ) -> Iterator[types.Transaction]:
        """Every item of `list_transactions`, page by page."""
        return self.pages(
            "/v1/tx/address/{address}",
            {"address": address},
            {"fromSlot": from_slot, "order": order, "limit": limit, "groupByPolicy": group_by_policy},
            key="api_key",
        )

    def list_transaction_history(
        self,
        address: str,
        *,
        offset: int | None = None,
        from_slot: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
    ) -> types.HistoryEntryPage:
        """List the transactions of an address.

        A transaction is listed if it spends from the address or pays to it.
        """
        answer: types.HistoryEntryPage = self.call(
            "GET",
            "/v1/tx/history/{address}",
            {"address": address},
            {"offset": offset, "fromSlot": from_slot, "order": order, "limit": limit},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_transaction_history(
        self,
        address: str,
        *,
        from_slot: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
    ) -> Iterator[types.HistoryEntry]:
        """Every item of `list_transaction_history`, page by page."""
        return self.pages(
            "/v1/tx/history/{address}",
            {"address": address},
            {"fromSlot": from_slot, "order": order, "limit": limit},
            key="api_key",
        )

    def get_transaction(self, tx_hash: str, *, group_by_policy: bool | None = None) -> types.FullTransactionAnswer:
        """Get a transaction by hash."""
        answer: types.FullTransactionAnswer = self.call(
            "GET",
            "/v1/tx/hash/{hash}",
            {"hash": tx_hash},
            {"groupByPolicy": group_by_policy},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def evaluate_transaction(self, *, cbor: str, idempotency_key: str | None = None) -> types.EvaluationAnswer:
        """Evaluate the scripts of a transaction.

        The transaction need not be signed. Its inputs must be unspent.
        """
        answer: types.EvaluationAnswer = self.call(
            "POST",
            "/v1/tx/evaluate",
            {},
            {},
            {"cbor": cbor},
            key="api_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def submit_transaction(self, *, cbor: str, idempotency_key: str | None = None) -> types.SubmissionAnswer:
        """Submit a signed transaction.

        A transaction that the node already has, in its mempool or in a block, is accepted again: if an answer
        was lost, send the same request. `GET /v1/tx/submitted/{hash}` says what becomes of it.
        """
        answer: types.SubmissionAnswer = self.call(
            "POST",
            "/v1/tx/submit",
            {},
            {},
            {"cbor": cbor},
            key="api_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def get_submitted_transaction(self, tx_hash: str) -> types.SubmittedTransactionAnswer:
        """Follow a submitted transaction.

        Every key of the account that has submitted it, with the scope `submit`, sees it.
        """
        answer: types.SubmittedTransactionAnswer = self.call(
            "GET", "/v1/tx/submitted/{hash}", {"hash": tx_hash}, {}, None, key="api_key", json=True
        )
        return answer

    def resubmit_transaction(self, tx_hash: str, *, idempotency_key: str | None = None) -> types.SubmissionAnswer:
        """Resubmit a transaction that a key of the account has submitted, for example after a fork has removed
        its block.

        One that waits in the node's mempool is accepted again; one that is in a block or has expired is
        refused.
        """
        answer: types.SubmissionAnswer = self.call(
            "POST",
            "/v1/tx/submitted/{hash}/resubmit",
            {"hash": tx_hash},
            {},
            None,
            key="api_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def get_script(self, script_hash: str) -> types.ScriptAnswer:
        """Get a script by hash."""
        answer: types.ScriptAnswer = self.call(
            "GET", "/v1/scripts/{scriptHash}", {"scriptHash": script_hash}, {}, None, key="api_key", json=True
        )
        return answer

    def get_datum(self, datum_hash: str) -> types.DatumAnswer:
        """Get a datum by hash."""
        answer: types.DatumAnswer = self.call(
            "GET", "/v1/datums/{datumHash}", {"datumHash": datum_hash}, {}, None, key="api_key", json=True
        )
        return answer

    def get_asset(
        self, asset: str, *, metadata_source: Literal["auto", "cip68", "cip25", "registry"] | None = None
    ) -> types.AssetAnswer:
        """Get an asset.

        With `metadata_source=auto`, metadata comes from the first source that has any, in the order cip68,
        cip25, registry. Any other value reads that source only. If the registry does not answer, the header
        `Metadata-Warning` says so, and `metadata` is what the registry said within the last day, or null.
        """
        answer: types.AssetAnswer = self.call(
            "GET",
            "/v1/assets/{asset}",
            {"asset": asset},
            {"metadata_source": metadata_source},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def list_policy_assets(
        self,
        policy_id: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.PolicyAssetPage:
        """List the assets of a policy by supply, including burned ones. Ties are ordered by name."""
        answer: types.PolicyAssetPage = self.call(
            "GET",
            "/v1/assets/policy/{policyId}",
            {"policyId": policy_id},
            {"limit": limit, "offset": offset, "order": order},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_policy_assets(
        self, policy_id: str, *, limit: int | None = None, order: Literal["asc", "desc"] | None = None
    ) -> Iterator[types.PolicyAsset]:
        """Every item of `list_policy_assets`, page by page."""
        return self.pages(
            "/v1/assets/policy/{policyId}", {"policyId": policy_id}, {"limit": limit, "order": order}, key="api_key"
        )

    def list_policy_holders(
        self,
        policy_id: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.HolderPage:
        """List holders of a policy by total quantity."""
        answer: types.HolderPage = self.call(
            "GET",
            "/v1/assets/policy/{policyId}/holders",
            {"policyId": policy_id},
            {"limit": limit, "offset": offset, "order": order},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_policy_holders(
        self, policy_id: str, *, limit: int | None = None, order: Literal["asc", "desc"] | None = None
    ) -> Iterator[types.Holder]:
        """Every item of `list_policy_holders`, page by page."""
        return self.pages(
            "/v1/assets/policy/{policyId}/holders",
            {"policyId": policy_id},
            {"limit": limit, "order": order},
            key="api_key",
        )

    def list_asset_holders(
        self,
        asset: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.HolderPage:
        """List holders of an asset by quantity."""
        answer: types.HolderPage = self.call(
            "GET",
            "/v1/assets/{asset}/holders",
            {"asset": asset},
            {"limit": limit, "offset": offset, "order": order},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_asset_holders(
        self, asset: str, *, limit: int | None = None, order: Literal["asc", "desc"] | None = None
    ) -> Iterator[types.Holder]:
        """Every item of `list_asset_holders`, page by page."""
        return self.pages(
            "/v1/assets/{asset}/holders", {"asset": asset}, {"limit": limit, "order": order}, key="api_key"
        )

    def list_asset_transactions(
        self,
        asset: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.AssetTransactionPage:
        """List the transactions with an asset in at least one output."""
        answer: types.AssetTransactionPage = self.call(
            "GET",
            "/v1/assets/{asset}/transactions",
            {"asset": asset},
            {"limit": limit, "offset": offset, "order": order},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_asset_transactions(
        self, asset: str, *, limit: int | None = None, order: Literal["asc", "desc"] | None = None
    ) -> Iterator[types.AssetTransaction]:
        """Every item of `list_asset_transactions`, page by page."""
        return self.pages(
            "/v1/assets/{asset}/transactions", {"asset": asset}, {"limit": limit, "order": order}, key="api_key"
        )

    def list_asset_mints(
        self,
        asset: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.MintPage:
        """List mints and burns of an asset, with one net quantity per transaction."""
        answer: types.MintPage = self.call(
            "GET",
            "/v1/assets/{asset}/mints",
            {"asset": asset},
            {"limit": limit, "offset": offset, "order": order},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_asset_mints(
        self, asset: str, *, limit: int | None = None, order: Literal["asc", "desc"] | None = None
    ) -> Iterator[types.Mint]:
        """Every item of `list_asset_mints`, page by page."""
        return self.pages("/v1/assets/{asset}/mints", {"asset": asset}, {"limit": limit, "order": order}, key="api_key")

    def list_policy_account_holders(
        self,
        policy_id: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.AccountHolderPage:
        """List holders of a policy by stake account.

        They are sorted by total quantity. An address without a stake account has its own entry.
        """
        answer: types.AccountHolderPage = self.call(
            "GET",
            "/v1/assets/policy/{policyId}/holders/accounts",
            {"policyId": policy_id},
            {"limit": limit, "offset": offset, "order": order},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_policy_account_holders(
        self, policy_id: str, *, limit: int | None = None, order: Literal["asc", "desc"] | None = None
    ) -> Iterator[types.AccountHolder]:
        """Every item of `list_policy_account_holders`, page by page."""
        return self.pages(
            "/v1/assets/policy/{policyId}/holders/accounts",
            {"policyId": policy_id},
            {"limit": limit, "order": order},
            key="api_key",
        )

    def list_asset_account_holders(
        self,
        asset: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.AccountHolderPage:
        """List holders of an asset by stake account.

        They are sorted by quantity. An address without a stake account has its own entry.
        """
        answer: types.AccountHolderPage = self.call(
            "GET",
            "/v1/assets/{asset}/holders/accounts",
            {"asset": asset},
            {"limit": limit, "offset": offset, "order": order},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_asset_account_holders(
        self, asset: str, *, limit: int | None = None, order: Literal["asc", "desc"] | None = None
    ) -> Iterator[types.AccountHolder]:
        """Every item of `list_asset_account_holders`, page by page."""
        return self.pages(
            "/v1/assets/{asset}/holders/accounts", {"asset": asset}, {"limit": limit, "order": order}, key="api_key"
        )

    def export_asset_holders(self, asset: str) -> str:
        """Download all holders of an asset as CSV, the largest first.

        All lines are from one block; the name of the file has its slot.
        """
        answer: str = self.call(
            "GET", "/v1/assets/{asset}/holders.csv", {"asset": asset}, {}, None, key="api_key", json=False
        )
        return answer

    def stream_asset_holders(self, asset: str) -> Iterator[str]:
        """The lines of `export_asset_holders` as they arrive, each with its line end."""
        return self.lines("/v1/assets/{asset}/holders.csv", {"asset": asset}, {}, key="api_key")

    def export_asset_account_holders(self, asset: str) -> str:
        """Download all holders of an asset by stake account as CSV, the largest first.

        All lines are from one block; the name of the file has its slot.
        """
        answer: str = self.call(
            "GET", "/v1/assets/{asset}/holders/accounts.csv", {"asset": asset}, {}, None, key="api_key", json=False
        )
        return answer

    def stream_asset_account_holders(self, asset: str) -> Iterator[str]:
        """The lines of `export_asset_account_holders` as they arrive, each with its line end."""
        return self.lines("/v1/assets/{asset}/holders/accounts.csv", {"asset": asset}, {}, key="api_key")

    def export_policy_holders(self, policy_id: str) -> str:
        """Download all holders of a policy as CSV, the largest first.

        All lines are from one block; the name of the file has its slot.
        """
        answer: str = self.call(
            "GET",
            "/v1/assets/policy/{policyId}/holders.csv",
            {"policyId": policy_id},
            {},
            None,
            key="api_key",
            json=False,
        )
        return answer

    def stream_policy_holders(self, policy_id: str) -> Iterator[str]:
        """The lines of `export_policy_holders` as they arrive, each with its line end."""
        return self.lines("/v1/assets/policy/{policyId}/holders.csv", {"policyId": policy_id}, {}, key="api_key")

    def export_policy_account_holders(self, policy_id: str) -> str:
        """Download all holders of a policy by stake account as CSV, the largest first.

        All lines are from one block; the name of the file has its slot.
        """
        answer: str = self.call(
            "GET",
            "/v1/assets/policy/{policyId}/holders/accounts.csv",
            {"policyId": policy_id},
            {},
            None,
            key="api_key",
            json=False,
        )
        return answer

    def stream_policy_account_holders(self, policy_id: str) -> Iterator[str]:
        """The lines of `export_policy_account_holders` as they arrive, each with its line end."""
        return self.lines(
            "/v1/assets/policy/{policyId}/holders/accounts.csv", {"policyId": policy_id}, {}, key="api_key"
        )

    def get_address(self, address: str) -> types.AddressInfoAnswer:
        """Get an address.

        The answer has its credentials, what it holds, and its first and last transaction.
        """
        answer: types.AddressInfoAnswer = self.call(
            "GET", "/v1/addresses/{address}", {"address": address}, {}, None, key="api_key", json=True
        )
        return answer

    def list_address_utxos(
        self,
        address: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        asset: str | None = None,
        cursor: str | None = None,
    ) -> types.UnspentOutputPage:
        """List the unspent outputs of an address.

        With `asset`, only those that hold it.
        """
        answer: types.UnspentOutputPage = self.call(
            "GET",
            "/v1/addresses/{address}/utxos",
            {"address": address},
            {"limit": limit, "offset": offset, "order": order, "asset": asset, "cursor": cursor},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_address_utxos(
        self,
        address: str,
        *,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        asset: str | None = None,
        cursor: str | None = None,
    ) -> Iterator[types.UnspentOutput]:
        """Every item of `list_address_utxos`, page by page."""
        return self.pages(
            "/v1/addresses/{address}/utxos",
            {"address": address},
            {"limit": limit, "order": order, "asset": asset, "cursor": cursor},
            key="api_key",
        )

    def list_address_assets(
        self,
        address: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        cursor: str | None = None,
    ) -> types.HoldingPage:
        """List the assets in the unspent outputs of an address."""
        answer: types.HoldingPage = self.call(
            "GET",
            "/v1/addresses/{address}/assets",
            {"address": address},
            {"limit": limit, "offset": offset, "order": order, "cursor": cursor},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_address_assets(
        self,
        address: str,
        *,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        cursor: str | None = None,
    ) -> Iterator[types.Holding]:
        """Every item of `list_address_assets`, page by page."""
        return self.pages(
            "/v1/addresses/{address}/assets",
            {"address": address},
            {"limit": limit, "order": order, "cursor": cursor},
            key="api_key",
        )

    def get_account(self, stake_address: str) -> types.AccountAnswer:
        """Get a stake account.

        The answer has its pool and representative, its rewards, what its addresses hold, and its first and
        last transaction.
        """
        answer: types.AccountAnswer = self.call(
            "GET", "/v1/accounts/{stake_address}", {"stake_address": stake_address}, {}, None, key="api_key", json=True
        )
        return answer

    def list_account_addresses(
        self,
        stake_address: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        cursor: str | None = None,
    ) -> types.AccountAddressPage:
        """List the addresses of a stake account that were ever used.

        Their order is fixed, and roughly that of their first use.
        """
        answer: types.AccountAddressPage = self.call(
            "GET",
            "/v1/accounts/{stake_address}/addresses",
            {"stake_address": stake_address},
            {"limit": limit, "offset": offset, "order": order, "cursor": cursor},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_account_addresses(
        self,
        stake_address: str,
        *,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        cursor: str | None = None,
    ) -> Iterator[types.AccountAddress]:
        """Every item of `list_account_addresses`, page by page."""
        return self.pages(
            "/v1/accounts/{stake_address}/addresses",
            {"stake_address": stake_address},
            {"limit": limit, "order": order, "cursor": cursor},
            key="api_key",
        )

    def list_account_utxos(
        self,
        stake_address: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        asset: str | None = None,
        cursor: str | None = None,
    ) -> types.UnspentOutputPage:
        """List the unspent outputs of a stake account.

        With `asset`, only those that hold it.
        """
        answer: types.UnspentOutputPage = self.call(
            "GET",
            "/v1/accounts/{stake_address}/utxos",
            {"stake_address": stake_address},
            {"limit": limit, "offset": offset, "order": order, "asset": asset, "cursor": cursor},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_account_utxos(
        self,
        stake_address: str,
        *,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        asset: str | None = None,
        cursor: str | None = None,
    ) -> Iterator[types.UnspentOutput]:
        """Every item of `list_account_utxos`, page by page."""
        return self.pages(
            "/v1/accounts/{stake_address}/utxos",
            {"stake_address": stake_address},
            {"limit": limit, "order": order, "asset": asset, "cursor": cursor},
            key="api_key",
        )

    def list_account_assets(
        self,
        stake_address: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        cursor: str | None = None,
    ) -> types.HoldingPage:
        """List the assets in the unspent outputs of a stake account."""
        answer: types.HoldingPage = self.call(
            "GET",
            "/v1/accounts/{stake_address}/assets",
            {"stake_address": stake_address},
            {"limit": limit, "offset": offset, "order": order, "cursor": cursor},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_account_assets(
        self,
        stake_address: str,
        *,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        cursor: str | None = None,
    ) -> Iterator[types.Holding]:
        """Every item of `list_account_assets`, page by page."""
        return self.pages(
            "/v1/accounts/{stake_address}/assets",
            {"stake_address": stake_address},
            {"limit": limit, "order": order, "cursor": cursor},
            key="api_key",
        )

    def list_account_transaction_history(
        self,
        stake_address: str,
        *,
        offset: int | None = None,
        from_slot: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
    ) -> types.HistoryEntryPage:
        """List the transactions of a stake account.

        A transaction is listed if it spends from an address of the account or pays to one.
        """
        answer: types.HistoryEntryPage = self.call(
            "GET",
            "/v1/accounts/{stake_address}/transactions",
            {"stake_address": stake_address},
            {"offset": offset, "fromSlot": from_slot, "order": order, "limit": limit},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_account_transaction_history(
        self,
        stake_address: str,
        *,
        from_slot: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
    ) -> Iterator[types.HistoryEntry]:
        """Every item of `list_account_transaction_history`, page by page."""
        return self.pages(
            "/v1/accounts/{stake_address}/transactions",
            {"stake_address": stake_address},
            {"fromSlot": from_slot, "order": order, "limit": limit},
            key="api_key",
        )

    def list_account_transactions(
        self,
        stake_address: str,
        *,
        offset: int | None = None,
        from_slot: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
        group_by_policy: bool | None = None,
    ) -> types.TransactionPage:
        """List the transactions of a stake account with their inputs and outputs."""
        answer: types.TransactionPage = self.call(
            "GET",
            "/v1/accounts/{stake_address}/transactions/detailed",
            {"stake_address": stake_address},
            {"offset": offset, "fromSlot": from_slot, "order": order, "limit": limit, "groupByPolicy": group_by_policy},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_account_transactions(
        self,
        stake_address: str,
        *,
        from_slot: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        limit: int | None = None,
        group_by_policy: bool | None = None,
    ) -> Iterator[types.Transaction]:
        """Every item of `list_account_transactions`, page by page."""
        return self.pages(
            "/v1/accounts/{stake_address}/transactions/detailed",
            {"stake_address": stake_address},
            {"fromSlot": from_slot, "order": order, "limit": limit, "groupByPolicy": group_by_policy},
            key="api_key",
        )

    def list_account_delegations(
        self,
        stake_address: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        cursor: str | None = None,
    ) -> types.DelegationPage:
        """List the delegations of a stake account to pools, past ones included."""
        answer: types.DelegationPage = self.call(
            "GET",
            "/v1/accounts/{stake_address}/delegations",
            {"stake_address": stake_address},
            {"limit": limit, "offset": offset, "order": order, "cursor": cursor},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_account_delegations(
        self,
        stake_address: str,
        *,
        limit: int | None = None,
        order: Literal["asc", "desc"] | None = None,
        cursor: str | None = None,
    ) -> Iterator[types.Delegation]:
        """Every item of `list_account_delegations`, page by page."""
        return self.pages(
            "/v1/accounts/{stake_address}/delegations",
            {"stake_address": stake_address},
            {"limit": limit, "order": order, "cursor": cursor},
            key="api_key",
        )

    def list_account_withdrawals(
        self,
        stake_address: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.AccountWithdrawalPage:
        """List the withdrawals of rewards from a stake account."""
        answer: types.AccountWithdrawalPage = self.call(
            "GET",
            "/v1/accounts/{stake_address}/withdrawals",
            {"stake_address": stake_address},
            {"limit": limit, "offset": offset, "order": order},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_account_withdrawals(
        self, stake_address: str, *, limit: int | None = None, order: Literal["asc", "desc"] | None = None
    ) -> Iterator[types.AccountWithdrawal]:
        """Every item of `list_account_withdrawals`, page by page."""
        return self.pages(
            "/v1/accounts/{stake_address}/withdrawals",
            {"stake_address": stake_address},
            {"limit": limit, "order": order},
            key="api_key",
        )

    def get_utxo(self, tx_hash: str, index: int) -> types.MadeOutputAnswer:
        """Get an output, spent or not.

        The answer names the transaction that has spent it, if any.
        """
        answer: types.MadeOutputAnswer = self.call(
            "GET",
            "/v1/utxos/{tx_hash}/{index}",
            {"tx_hash": tx_hash, "index": index},
            {},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def get_addresses(self, *, ids: list[str], idempotency_key: str | None = None) -> types.AddressInfoBulk:
        """Get up to 100 addresses."""
        answer: types.AddressInfoBulk = self.call(
            "POST",
            "/v1/bulk/addresses",
            {},
            {},
            {"ids": ids},
            key="api_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def get_accounts(self, *, ids: list[str], idempotency_key: str | None = None) -> types.AccountBulk:
        """Get up to 100 stake accounts."""
        answer: types.AccountBulk = self.call(
            "POST",
            "/v1/bulk/accounts",
            {},
            {},
            {"ids": ids},
            key="api_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def get_transactions(self, *, ids: list[str], idempotency_key: str | None = None) -> types.FullTransactionBulk:
        """Get up to 100 transactions by their hashes."""
        answer: types.FullTransactionBulk = self.call(
            "POST",
            "/v1/bulk/transactions",
            {},
            {},
            {"ids": ids},
            key="api_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def get_assets(self, *, ids: list[str], idempotency_key: str | None = None) -> types.AssetBulk:
        """Get up to 100 assets.

        Their metadata is that on the chain (CIP-68 and CIP-25). The registry is not asked.
        """
        answer: types.AssetBulk = self.call(
            "POST",
            "/v1/bulk/assets",
            {},
            {},
            {"ids": ids},
            key="api_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def get_utxos(self, *, ids: list[str], idempotency_key: str | None = None) -> types.MadeOutputBulk:
        """Get up to 100 outputs, spent or not.

        An id is the hash of the transaction, `#` and the index of the output there.
        """
        answer: types.MadeOutputBulk = self.call(
            "POST",
            "/v1/bulk/utxos",
            {},
            {},
            {"ids": ids},
            key="api_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def get_pool(self, pool_id: str) -> types.StakePoolAnswer:
        """Get a stake pool."""
        answer: types.StakePoolAnswer = self.call(
            "GET", "/v1/pools/{poolId}", {"poolId": pool_id}, {}, None, key="api_key", json=True
        )
        return answer

    def list_pool_delegators(
        self, pool_id: str, *, limit: int | None = None, offset: int | None = None
    ) -> types.DelegatorsPage:
        """List the delegators of a stake pool by stake, largest first."""
        answer: types.DelegatorsPage = self.call(
            "GET",
            "/v1/pools/{poolId}/delegators/list",
            {"poolId": pool_id},
            {"limit": limit, "offset": offset},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_pool_delegators(self, pool_id: str, *, limit: int | None = None) -> Iterator[types.Delegator]:
        """Every item of `list_pool_delegators`, page by page."""
        return self.pages(
            "/v1/pools/{poolId}/delegators/list",
            {"poolId": pool_id},
            {"limit": limit},
            key="api_key",
            inside="delegators",
        )

    def get_block(self, block: str) -> types.BlockAnswer:
        """Get a block by hash or number, or the latest one."""
        answer: types.BlockAnswer = self.call(
            "GET", "/v1/blocks/{block}", {"block": block}, {}, None, key="api_key", json=True
        )
        return answer

    def list_block_transactions(
        self,
        block: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        order: Literal["asc", "desc"] | None = None,
    ) -> types.BlockTransactionPage:
        """List the transactions of a block."""
        answer: types.BlockTransactionPage = self.call(
            "GET",
            "/v1/blocks/{block}/transactions",
            {"block": block},
            {"limit": limit, "offset": offset, "order": order},
            None,
            key="api_key",
            json=True,
        )
        return answer

    def iterate_block_transactions(
        self, block: str, *, limit: int | None = None, order: Literal["asc", "desc"] | None = None
    ) -> Iterator[types.BlockTransaction]:
        """Every item of `list_block_transactions`, page by page."""
        return self.pages(
            "/v1/blocks/{block}/transactions", {"block": block}, {"limit": limit, "order": order}, key="api_key"
        )

    def get_epoch(self, epoch: str) -> types.EpochAnswer:
        """Get an epoch by number, or the latest one."""
        answer: types.EpochAnswer = self.call(
            "GET", "/v1/epochs/{epoch}", {"epoch": epoch}, {}, None, key="api_key", json=True
        )
        return answer

    def get_epoch_parameters(self, epoch: str) -> types.EpochParametersAnswer:
        """Get the protocol parameters of an epoch.

        They are known of each epoch in which the index followed the node's tip.
        """
        answer: types.EpochParametersAnswer = self.call(
            "GET", "/v1/epochs/{epoch}/parameters", {"epoch": epoch}, {}, None, key="api_key", json=True
        )
        return answer

    def get_network(self) -> types.NetworkSummaryAnswer:
        """Get the state of the network: tip, epoch, supply and stake."""
        answer: types.NetworkSummaryAnswer = self.call("GET", "/v1/network", {}, {}, None, key="api_key", json=True)
        return answer

    def get_genesis(self) -> types.GenesisAnswer:
        """Get the genesis configurations of the network."""
        answer: types.GenesisAnswer = self.call("GET", "/v1/genesis", {}, {}, None, key="api_key", json=True)
        return answer

    def get_own_key(self) -> types.OwnKeyAnswer:
        """Read the network, limits, expiry and restrictions of the API key of this request.

        The request counts, as any other. Every key may make it, whatever its scopes.
        """
        answer: types.OwnKeyAnswer = self.call("GET", "/v1/key", {}, {}, None, key="api_key", json=True)
        return answer

    def create_user(
        self,
        *,
        name: str,
        external_id: str | Unset | None = UNSET,
        email: str | Unset | None = UNSET,
        metadata: dict[str, Any] | Unset | None = UNSET,
        billing_plan: str | Unset | None = UNSET,
        idempotency_key: str | None = None,
    ) -> types.UserAccountConfirmation:
        """Create a user account. It belongs to the admin key that creates it, and starts active.

        Requires the permission `manage_users`.
        """
        answer: types.UserAccountConfirmation = self.call(
            "POST",
            "/v1/admin/users",
            {},
            {},
            {
                "name": name,
                "external_id": external_id,
                "email": email,
                "metadata": metadata,
                "billing_plan": billing_plan,
            },
            key="admin_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def list_users(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        status: Literal["active", "suspended", "pending"] | None = None,
        external_id: str | None = None,
        search: str | None = None,
    ) -> types.UserAccountPage:
        """List the caller's user accounts that match the filters, newest first.

        Requires the permission `manage_users`.
        """
        answer: types.UserAccountPage = self.call(
            "GET",
            "/v1/admin/users",
            {},
            {"limit": limit, "offset": offset, "status": status, "external_id": external_id, "search": search},
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def iterate_users(
        self,
        *,
        limit: int | None = None,
        status: Literal["active", "suspended", "pending"] | None = None,
        external_id: str | None = None,
        search: str | None = None,
    ) -> Iterator[types.UserAccount]:
        """Every item of `list_users`, page by page."""
        return self.pages(
            "/v1/admin/users",
            {},
            {"limit": limit, "status": status, "external_id": external_id, "search": search},
            key="admin_key",
        )

    def get_user(self, user_id: str) -> types.UserAccountAnswer:
        """Read one user account.

        Requires the permission `manage_users`.
        """
        answer: types.UserAccountAnswer = self.call(
            "GET", "/v1/admin/users/{id}", {"id": user_id}, {}, None, key="admin_key", json=True
        )
        return answer

    def update_user(
        self,
        user_id: str,
        *,
        name: str | Unset = UNSET,
        external_id: str | Unset | None = UNSET,
        email: str | Unset | None = UNSET,
        metadata: dict[str, Any] | Unset | None = UNSET,
        billing_plan: str | Unset | None = UNSET,
    ) -> types.UserAccountConfirmation:
        """Change fields of a user account.

        Omitted fields stay unchanged, null clears an optional field, and `metadata` is replaced as a whole.
        An empty body changes nothing. Requires the permission `manage_users`.
        """
        answer: types.UserAccountConfirmation = self.call(
            "PATCH",
            "/v1/admin/users/{id}",
            {"id": user_id},
            {},
            {
                "name": name,
                "external_id": external_id,
                "email": email,
                "metadata": metadata,
                "billing_plan": billing_plan,
            },
            key="admin_key",
            json=True,
        )
        return answer

    def delete_user(self, user_id: str) -> types.DeletedUserConfirmation:
        """Delete a user account permanently: end its API keys and erase what is personal.

        Names, references, email, billing plan, descriptions, metadata and IP networks are erased, including
        in the audit log. Usage remains, under the ids of the account and its credentials. Requires the
        permission `manage_users`.
        """
        answer: types.DeletedUserConfirmation = self.call(
            "DELETE", "/v1/admin/users/{id}", {"id": user_id}, {}, None, key="admin_key", json=True
        )
        return answer

    def get_user_by_external_id(self, external_id: str) -> types.UserAccountAnswer:
        """Read one user account by the partner's own reference.

        Requires the permission `manage_users`.
        """
        answer: types.UserAccountAnswer = self.call(
            "GET",
            "/v1/admin/users/by-external-id/{external_id}",
            {"external_id": external_id},
            {},
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def suspend_user(self, user_id: str, *, idempotency_key: str | None = None) -> types.UserAccountConfirmation:
        """Suspend a user account: its API keys are refused from now on. A repeated call changes nothing.

        Requires the permission `manage_users`.
        """
        answer: types.UserAccountConfirmation = self.call(
            "POST",
            "/v1/admin/users/{id}/suspend",
            {"id": user_id},
            {},
            None,
            key="admin_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def reactivate_user(self, user_id: str, *, idempotency_key: str | None = None) -> types.UserAccountConfirmation:
        """Reactivate a user account and its API keys. A repeated call changes nothing.

        Requires the permission `manage_users`.
        """
        answer: types.UserAccountConfirmation = self.call(
            "POST",
            "/v1/admin/users/{id}/reactivate",
            {"id": user_id},
            {},
            None,
            key="admin_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def get_user_usage(
        self, user_id: str, *, start_date: str | None = None, end_date: str | None = None
    ) -> types.UserUsageAnswer:
        """Read the usage of one user account. The default period is the last 30 days.

        Requires the permission `view_usage`.
        """
        answer: types.UserUsageAnswer = self.call(
            "GET",
            "/v1/admin/users/{id}/usage",
            {"id": user_id},
            {"start_date": start_date, "end_date": end_date},
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def list_usage_by_user(
        self,
        *,
        start_date: str | None = None,
        end_date: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> types.UserUsagePage:
        """List the usage of the caller's active accounts, most requests first. The default period is the last 30
        days.

        Requires the permission `view_usage`.
        """
        answer: types.UserUsagePage = self.call(
            "GET",
            "/v1/admin/users/usage/summary",
            {},
            {"start_date": start_date, "end_date": end_date, "limit": limit, "offset": offset},
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def iterate_usage_by_user(
        self, *, start_date: str | None = None, end_date: str | None = None, limit: int | None = None
    ) -> Iterator[types.UserUsage]:
        """Every item of `list_usage_by_user`, page by page."""
        return self.pages(
            "/v1/admin/users/usage/summary",
            {},
            {"start_date": start_date, "end_date": end_date, "limit": limit},
            key="admin_key",
        )

    def create_credential(
        self,
        *,
        name: str,
        user_account_id: str,
        network_id: int,
        description: str | Unset | None = UNSET,
        expires_at: str | Unset | None = UNSET,
        rate_limit_per_minute: int | Unset | None = UNSET,
        metadata: dict[str, Any] | Unset | None = UNSET,
        idempotency_key: str | None = None,
    ) -> types.IssuedCredentialConfirmation:
        """Issue an API key to a user account.

        Only this answer contains the full key; the service stores its SHA-256. The key of a suspended account
        works once the account is active again. Requires the permission `manage_credentials`.
        """
        answer: types.IssuedCredentialConfirmation = self.call(
            "POST",
            "/v1/admin/credentials",
            {},
            {},
            {
                "name": name,
                "user_account_id": user_account_id,
                "network_id": network_id,
                "description": description,
                "expires_at": expires_at,
                "rate_limit_per_minute": rate_limit_per_minute,
                "metadata": metadata,
            },
            key="admin_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def list_credentials(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        include_revoked: bool | None = None,
        user_account_id: str | None = None,
        network_id: int | None = None,
        status: Literal["active", "expired", "revoked"] | None = None,
        search: str | None = None,
        expires_within: int | None = None,
    ) -> types.CredentialPage:
        """List the credentials of the caller's accounts that match the filters, newest first.

        Requires the permission `manage_credentials`.
        """
        answer: types.CredentialPage = self.call(
            "GET",
            "/v1/admin/credentials",
            {},
            {
                "limit": limit,
                "offset": offset,
                "includeRevoked": include_revoked,
                "user_account_id": user_account_id,
                "network_id": network_id,
                "status": status,
                "search": search,
                "expires_within": expires_within,
            },
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def iterate_credentials(
        self,
        *,
        limit: int | None = None,
        include_revoked: bool | None = None,
        user_account_id: str | None = None,
        network_id: int | None = None,
        status: Literal["active", "expired", "revoked"] | None = None,
        search: str | None = None,
        expires_within: int | None = None,
    ) -> Iterator[types.Credential]:
        """Every item of `list_credentials`, page by page."""
        return self.pages(
            "/v1/admin/credentials",
            {},
            {
                "limit": limit,
                "includeRevoked": include_revoked,
                "user_account_id": user_account_id,
                "network_id": network_id,
                "status": status,
                "search": search,
                "expires_within": expires_within,
            },
            key="admin_key",
        )

    def get_credential(self, credential_id: str) -> types.CredentialAnswer:
        """Read one credential, revoked or not.

        Requires the permission `manage_credentials`.
        """
        answer: types.CredentialAnswer = self.call(
            "GET", "/v1/admin/credentials/{id}", {"id": credential_id}, {}, None, key="admin_key", json=True
        )
        return answer

    def update_credential(
        self, credential_id: str, *, name: str | Unset = UNSET, description: str | Unset | None = UNSET
    ) -> types.CredentialConfirmation:
        """Change the name or the description of a credential that is not revoked.

        Requires the permission `manage_credentials`.
        """
        answer: types.CredentialConfirmation = self.call(
            "PATCH",
            "/v1/admin/credentials/{id}",
            {"id": credential_id},
            {},
            {"name": name, "description": description},
            key="admin_key",
            json=True,
        )
        return answer

    def revoke_credential(self, credential_id: str) -> types.RevokedCredentialConfirmation:
        """Revoke a credential permanently. Its API key is refused from the next request on; the record remains.

        Requires the permission `manage_credentials`.
        """
        answer: types.RevokedCredentialConfirmation = self.call(
            "DELETE", "/v1/admin/credentials/{id}", {"id": credential_id}, {}, None, key="admin_key", json=True
        )
        return answer

    def rotate_credential(
        self, credential_id: str, *, overlap_seconds: int, idempotency_key: str | None = None
    ) -> types.RotatedCredentialConfirmation:
        """Replace the API key of a credential with a new one. The former key remains valid during the overlap.

        Only this answer contains the new key. Both keys count for the same credential and share its limits;
        usage continues under the same id, and restrictions stay. Revocation ends both. Requires the
        permission `manage_credentials`.
        """
        answer: types.RotatedCredentialConfirmation = self.call(
            "POST",
            "/v1/admin/credentials/{id}/rotate",
            {"id": credential_id},
            {},
            {"overlap_seconds": overlap_seconds},
            key="admin_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def get_credential_limits(self, credential_id: str) -> types.LimitsAnswer:
        """Read the limits of a credential, revoked or not.

        Requires the permission `manage_credentials`.
        """
        answer: types.LimitsAnswer = self.call(
            "GET", "/v1/admin/credentials/{id}/limits", {"id": credential_id}, {}, None, key="admin_key", json=True
        )
        return answer

    def update_credential_limits(
        self,
        credential_id: str,
        *,
        rate_limit_per_minute: int | Unset = UNSET,
        expires_at: str | Unset | None = UNSET,
        quota: dict[str, Any] | Unset | None = UNSET,
    ) -> types.LimitsConfirmation:
        """Change the limits of an unrevoked credential, effective from its very next request.

        Omitted fields stay unchanged; null removes the expiry or the quota. A new quota includes the requests
        that its day or month has already seen. Requires the permission `manage_credentials`.
        """
        answer: types.LimitsConfirmation = self.call(
            "PUT",
            "/v1/admin/credentials/{id}/limits",
            {"id": credential_id},
            {},
            {"rate_limit_per_minute": rate_limit_per_minute, "expires_at": expires_at, "quota": quota},
            key="admin_key",
            json=True,
        )
        return answer

    def get_credential_restrictions(self, credential_id: str) -> types.RestrictionsRecordAnswer:
        """Read the restrictions of a credential, revoked or not.

        Requires the permission `manage_credentials`.
        """
        answer: types.RestrictionsRecordAnswer = self.call(
            "GET",
            "/v1/admin/credentials/{id}/restrictions",
            {"id": credential_id},
            {},
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def update_credential_restrictions(
        self,
        credential_id: str,
        *,
        ip_networks: list[str] | Unset | None = UNSET,
        scopes: list[Literal["transactions", "assets", "pools", "network", "accounts", "submit"]]
        | Unset
        | None = UNSET,
    ) -> types.RestrictionsRecordConfirmation:
        """Restrict an unrevoked credential to IP networks, scopes, or both, effective from its very next
        request.

        Omitted fields stay unchanged; an empty array or null removes a restriction. Each chain endpoint
        belongs to one scope; `/v1/key` may be called with any. The scope `submit` must be named: a key
        without scopes may call everything else. Requires the permission `manage_credentials`.
        """
        answer: types.RestrictionsRecordConfirmation = self.call(
            "PUT",
            "/v1/admin/credentials/{id}/restrictions",
            {"id": credential_id},
            {},
            {"ip_networks": ip_networks, "scopes": scopes},
            key="admin_key",
            json=True,
        )
        return answer

    def list_usage_by_credential(
        self,
        *,
        start_date: str | None = None,
        end_date: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> types.ListedUsagePage:
        """List the usage of every credential of the caller, most requests first.

        The list includes revoked and unused credentials. Without dates, all requests count. Requires the
        permission `view_usage`.
        """
        answer: types.ListedUsagePage = self.call(
            "GET",
            "/v1/admin/usage",
            {},
            {"start_date": start_date, "end_date": end_date, "limit": limit, "offset": offset},
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def iterate_usage_by_credential(
        self, *, start_date: str | None = None, end_date: str | None = None, limit: int | None = None
    ) -> Iterator[types.ListedUsage]:
        """Every item of `list_usage_by_credential`, page by page."""
        return self.pages(
            "/v1/admin/usage", {}, {"start_date": start_date, "end_date": end_date, "limit": limit}, key="admin_key"
        )

    def get_credential_usage(
        self, credential_id: str, *, start_date: str | None = None, end_date: str | None = None
    ) -> types.CredentialUsageDetailAnswer:
        """Read the usage of one credential, in total and by day.

        The default period is from the credential's creation to now. Requires the permission `view_usage`.
        """
        answer: types.CredentialUsageDetailAnswer = self.call(
            "GET",
            "/v1/admin/usage/{id}",
            {"id": credential_id},
            {"start_date": start_date, "end_date": end_date},
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def list_credential_usage_breakdown(
        self,
        credential_id: str,
        *,
        start_date: str | None = None,
        end_date: str | None = None,
        granularity: Literal["hour", "day", "month"] | None = None,
        group_by: Literal["endpoint_and_status", "endpoint", "status", "none"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> types.UsagePartPage:
        """List the usage of one credential by period, newest first, then by endpoint and status.

        Periods without requests are left out. A request appears within five seconds. Whole hours are counted:
        the first and the last hour of the period are included completely. The default period is the last 30
        days. Requires the permission `view_usage`.
        """
        answer: types.UsagePartPage = self.call(
            "GET",
            "/v1/admin/usage/{id}/breakdown",
            {"id": credential_id},
            {
                "start_date": start_date,
                "end_date": end_date,
                "granularity": granularity,
                "group_by": group_by,
                "limit": limit,
                "offset": offset,
            },
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def iterate_credential_usage_breakdown(
        self,
        credential_id: str,
        *,
        start_date: str | None = None,
        end_date: str | None = None,
        granularity: Literal["hour", "day", "month"] | None = None,
        group_by: Literal["endpoint_and_status", "endpoint", "status", "none"] | None = None,
        limit: int | None = None,
    ) -> Iterator[types.UsagePart]:
        """Every item of `list_credential_usage_breakdown`, page by page."""
        return self.pages(
            "/v1/admin/usage/{id}/breakdown",
            {"id": credential_id},
            {
                "start_date": start_date,
                "end_date": end_date,
                "granularity": granularity,
                "group_by": group_by,
                "limit": limit,
            },
            key="admin_key",
        )

    def list_user_usage_breakdown(
        self,
        user_id: str,
        *,
        start_date: str | None = None,
        end_date: str | None = None,
        granularity: Literal["hour", "day", "month"] | None = None,
        group_by: Literal["endpoint_and_status", "endpoint", "status", "none"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> types.UsagePartPage:
        """List the usage of all credentials of an account by period, newest first, then by endpoint and status.

        Periods without requests are left out. A request appears within five seconds. Whole hours are counted:
        the first and the last hour of the period are included completely. The default period is the last 30
        days. Requires the permission `view_usage`.
        """
        answer: types.UsagePartPage = self.call(
            "GET",
            "/v1/admin/users/{id}/usage/breakdown",
            {"id": user_id},
            {
                "start_date": start_date,
                "end_date": end_date,
                "granularity": granularity,
                "group_by": group_by,
                "limit": limit,
                "offset": offset,
            },
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def iterate_user_usage_breakdown(
        self,
        user_id: str,
        *,
        start_date: str | None = None,
        end_date: str | None = None,
        granularity: Literal["hour", "day", "month"] | None = None,
        group_by: Literal["endpoint_and_status", "endpoint", "status", "none"] | None = None,
        limit: int | None = None,
    ) -> Iterator[types.UsagePart]:
        """Every item of `list_user_usage_breakdown`, page by page."""
        return self.pages(
            "/v1/admin/users/{id}/usage/breakdown",
            {"id": user_id},
            {
                "start_date": start_date,
                "end_date": end_date,
                "granularity": granularity,
                "group_by": group_by,
                "limit": limit,
            },
            key="admin_key",
        )

    def export_usage(
        self,
        *,
        start_date: str | None = None,
        end_date: str | None = None,
        granularity: Literal["hour", "day", "month"] | None = None,
        file_format: Literal["csv", "ndjson"] | None = None,
    ) -> str:
        """Download the usage of every credential by period, endpoint and status, as CSV or as JSON lines.

        Periods without requests are left out. A request appears within five seconds. Whole hours are counted:
        the first and the last hour of the period are included completely. The default period is the last 30
        days. The answer is a stream; if it ends without its last chunk, it is incomplete. Requires the
        permission `view_usage`.
        """
        answer: str = self.call(
            "GET",
            "/v1/admin/usage/export",
            {},
            {"start_date": start_date, "end_date": end_date, "granularity": granularity, "format": file_format},
            None,
            key="admin_key",
            json=False,
        )
        return answer

    def stream_usage(
        self,
        *,
        start_date: str | None = None,
        end_date: str | None = None,
        granularity: Literal["hour", "day", "month"] | None = None,
        file_format: Literal["csv", "ndjson"] | None = None,
    ) -> Iterator[str]:
        """The lines of `export_usage` as they arrive, each with its line end."""
        return self.lines(
            "/v1/admin/usage/export",
            {},
            {"start_date": start_date, "end_date": end_date, "granularity": granularity, "format": file_format},
            key="admin_key",
        )

    def list_audit_logs(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        action: str | None = None,
        admin_key_id: str | None = None,
        target_id: str | None = None,
        target_type: Literal["credential", "user_account", "admin_key"] | None = None,
        request_id: str | None = None,
        from_time: str | None = None,
        to_time: str | None = None,
    ) -> types.AuditEntryPage:
        """List audit log entries, newest first.

        A partner sees the actions of its own admin key; the bootstrap key sees all. Requires the permission
        `view_audit_logs`.
        """
        answer: types.AuditEntryPage = self.call(
            "GET",
            "/v1/admin/audit-logs",
            {},
            {
                "limit": limit,
                "offset": offset,
                "action": action,
                "admin_key_id": admin_key_id,
                "target_id": target_id,
                "target_type": target_type,
                "request_id": request_id,
                "from": from_time,
                "to": to_time,
            },
            None,
            key="admin_key",
            json=True,
        )
        return answer

    def iterate_audit_logs(
        self,
        *,
        limit: int | None = None,
        action: str | None = None,
        admin_key_id: str | None = None,
        target_id: str | None = None,
        target_type: Literal["credential", "user_account", "admin_key"] | None = None,
        request_id: str | None = None,
        from_time: str | None = None,
        to_time: str | None = None,
    ) -> Iterator[types.AuditEntry]:
        """Every item of `list_audit_logs`, page by page."""
        return self.pages(
            "/v1/admin/audit-logs",
            {},
            {
                "limit": limit,
                "action": action,
                "admin_key_id": admin_key_id,
                "target_id": target_id,
                "target_type": target_type,
                "request_id": request_id,
                "from": from_time,
                "to": to_time,
            },
            key="admin_key",
        )

    def create_admin_key(
        self,
        *,
        entity_name: str,
        permissions: list[Literal["manage_users", "manage_credentials", "view_usage", "view_audit_logs"]]
        | Unset
        | None = UNSET,
        idempotency_key: str | None = None,
    ) -> types.IssuedAdminKeyConfirmation:
        """Issue an admin key to a partner. Only this answer contains the full key.

        Requires the bootstrap key.
        """
        answer: types.IssuedAdminKeyConfirmation = self.call(
            "POST",
            "/v1/admin/admin-keys",
            {},
            {},
            {"entity_name": entity_name, "permissions": permissions},
            key="admin_key",
            json=True,
            idempotency_key=idempotency_key or new_idempotency_key(),
        )
        return answer

    def list_admin_keys(self, *, limit: int | None = None, offset: int | None = None) -> types.AdminKeyRecordPage:
        """List all admin keys, including the bootstrap key and revoked ones, newest first.

        Requires the bootstrap key.
        """
        answer: types.AdminKeyRecordPage = self.call(
            "GET", "/v1/admin/admin-keys", {}, {"limit": limit, "offset": offset}, None, key="admin_key", json=True
        )
        return answer

    def iterate_admin_keys(self, *, limit: int | None = None) -> Iterator[types.AdminKeyRecord]:
        """Every item of `list_admin_keys`, page by page."""
        return self.pages("/v1/admin/admin-keys", {}, {"limit": limit}, key="admin_key")

    def revoke_admin_key(self, admin_key_id: str) -> types.AdminKeyRecordConfirmation:
        """Revoke an admin key permanently. Its admin access ends at once; the API keys of its accounts continue
        to work.

        Requires the bootstrap key.
        """
        answer: types.AdminKeyRecordConfirmation = self.call(
            "DELETE", "/v1/admin/admin-keys/{id}", {"id": admin_key_id}, {}, None, key="admin_key", json=True
        )
        return answer

    def get_home(self) -> str:
        """Show a page with links, for people who open this API in a browser."""
        answer: str = self.call("GET", "/", {}, {}, None, key="none", json=False)
        return answer

    def get_health(self) -> types.AliveAnswer:
        """Check that the process is alive."""
        answer: types.AliveAnswer = self.call("GET", "/health", {}, {}, None, key="none", json=True)
        return answer

    def get_readiness(self) -> types.ReadyAnswer:
        """Check whether chain requests can be answered and counted; if not, the answer is 503 with the reasons.

        With status 200, `reasons` lists the problems that do not affect requests; if there are any, `status`
        is `degraded`. An answer is up to a second old.
        """
        answer: types.ReadyAnswer = self.call("GET", "/ready", {}, {}, None, key="none", json=True)
        return answer

    def get_network_readiness(self, network: str) -> types.NetworkReadyAnswer:
        """Check whether chain requests of one network are answered from a recent block, and counted; if not,
        503.

        The last block may be READY_LAG_S old, 300 seconds unless configured. An answer is up to a second old.
        """
        answer: types.NetworkReadyAnswer = self.call(
            "GET", "/ready/{network}", {"network": network}, {}, None, key="none", json=True
        )
        return answer

    def get_status(self) -> types.StatusAnswer:
        """Get the state of each network and of usage. An answer is up to a second old."""
        answer: types.StatusAnswer = self.call("GET", "/v1/status", {}, {}, None, key="none", json=True)
        return answer

    def get_status_page(self) -> str:
        """Show a page with the state of the service, which follows /v1/status."""
        answer: str = self.call("GET", "/status", {}, {}, None, key="none", json=False)
        return answer

    def get_console_page(self) -> str:
        """Show a page for partners, who administer accounts and API keys there with their admin key."""
        answer: str = self.call("GET", "/console", {}, {}, None, key="none", json=False)
        return answer

    def get_metrics(self) -> str:
        """Show the metrics of all processes that share this port, as Prometheus text."""
        answer: str = self.call("GET", "/metrics", {}, {}, None, key="none", json=False)
        return answer

    def get_openapi_document(self) -> dict[str, Any]:
        """Get this OpenAPI document."""
        answer: dict[str, Any] = self.call("GET", "/openapi.json", {}, {}, None, key="none", json=True)
        return answer

    def get_docs(self) -> str:
        """Show the interactive documentation of this API."""
        answer: str = self.call("GET", "/docs", {}, {}, None, key="none", json=False)
        return answer

    def get_docs_file(self, file: str) -> str:
        """Get a file of a page."""
        answer: str = self.call("GET", "/docs/{file}", {"file": file}, {}, None, key="none", json=False)
        return answer
