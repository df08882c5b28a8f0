// A download is read line by line while it arrives.

import { Ledgerline } from "ledgerline-client";
import { equal, failure, given } from "./expect.js";

const service = new Ledgerline(given("URL"), { adminKey: "a" });
const expected = JSON.parse(given("LINES")) as string[];

const lines: string[] = [];
for await (const line of service.streamUsage({ format: "csv" })) {
  lines.push(line);
  await service.getHealth(); // which lets the download go on
}
equal(lines, expected);

const brokenOff: string[] = [];
const error = await failure(
  (async () => {
    for await (const line of service.streamUsage({ format: "ndjson" })) brokenOff.push(line);
  })(),
);
equal([String(error), brokenOff], ["TypeError: terminated", expected.slice(0, 2)]);

for await (const line of service.streamUsage()) {
  equal(line, expected[0]);
  break; // ends the connection
}
