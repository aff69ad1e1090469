// SPDX-License-Identifier: Apache-2.0
//
// verify.js - verifies deliveries with the package standardwebhooks: one line of JSON each on standard input ({secret, headers,
// body}, the body in base64), one on standard output ({ok, payload} or {ok, error}).
// Usage: verify.js FOLDER, in which the package is installed.
"use strict";
const { createRequire } = require("module");
const path = require("path");
const readline = require("readline");

const { Webhook } = createRequire(path.join(process.argv[2], "package.json"))("standardwebhooks");

readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const told = JSON.parse(line);
    const answer = { ok: false };
    try {
        answer.payload = new Webhook(told.secret).verify(Buffer.from(told.body, "base64").toString(), told.headers);
        answer.ok = true;
    } catch (error) {
        answer.error = `${error.name}: ${error.message}`;
    }
    console.log(JSON.stringify(answer));
});
