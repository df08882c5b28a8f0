/*
 * Evaluates the Plutus scripts of one transaction. Reads JSON from standard input and writes JSON to standard output;
 * devnet/evaluation.py describes both. The first argument names the machine: scalus or aiken.
 */
"use strict";

const { readFileSync } = require("node:fs");

const PURPOSES = {
  Spend: "spend", Mint: "mint", Cert: "publish", Reward: "withdraw", Withdraw: "withdraw",
  Voting: "vote", Vote: "vote", Proposing: "propose", Propose: "propose",
};
const BY_NUMBER = ["spend", "mint", "publish", "withdraw", "vote", "propose"];

const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));

/** A transaction that fails has no pointer here, but the logs of the script. */
function scalus(asked) {
  const { Scalus, SlotConfig } = require("scalus");
  const { zeroTime, zeroSlot, slotLength } = asked.slots;
  try {
    const found = Scalus.evalPlutusScripts(
      bytes(asked.transaction), bytes(asked.unspent), new SlotConfig(zeroTime, zeroSlot, slotLength), asked.costModels);
    return { budgets: found.map(({ tag, index, budget }) => [
      PURPOSES[tag], index, Number(budget.memory), Number(budget.steps)]) };
  } catch (error) {
    return { error: error.message, traces: Array.isArray(error.logs) ? error.logs : null };
  }
}

/** A failure names the redeemer. */
function aiken(asked) {
  const { eval_phase_two_raw } = require("@lucid-evolution/uplc");
  const { zeroTime, zeroSlot, slotLength } = asked.slots;
  try {
    const found = eval_phase_two_raw(
      bytes(asked.transaction), asked.inputs.map(bytes), asked.outputs.map(bytes), bytes(asked.costModelsCbor),
      BigInt(asked.most.cpu), BigInt(asked.most.memory), BigInt(zeroTime), BigInt(zeroSlot), slotLength);
    return { redeemers: found.map((redeemer) => Buffer.from(redeemer).toString("hex")) };
  } catch (error) {
    return { error: String(error) };
  }
}

const asked = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify({ scalus, aiken }[process.argv[2]](asked)));
