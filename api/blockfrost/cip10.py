"""The labels of metadata that Blockfrost names, with the words of the registry of CIP-10."""

MEANINGS = {
    87: "milkomeda.com - The protocol magic for the milkomeda protocol",
    88: "milkomeda.com - the destination address in the sidechain",
    309: "Proof of Existence record",
    674: "CIP-0020 - Transaction message/comment metadata",
    721: "CIP-0025 - NFT Metadata Standard",
    777: "CIP-0027 - Royalties Standard",
    1188: "paradiso.app marketplace metadata",
    1189: "paradiso.app services metadata",
    1870: "Open Badges v2.0 compliant metadata",
    1967: "nut.link metadata oracles registry",
    1968: "nut.link metadata oracles data points",
    1988: "cardahub.io marketplace metadata",
    1989: "cardahub.io services metadata",
    6770: "fortunes.coconutpool.com fortune teller",
    **dict.fromkeys((61284, 61285, 61286), "CIP-0015 - Catalyst registration"),
}
