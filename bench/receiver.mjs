// SPDX-License-Identifier: Apache-2.0
// receiver.mjs KEY CERTIFICATE SECRET - what an ordinary receiver of webhooks does, on node's own HTTPS server: it reads a request, checks
// its signature and its age as Standard Webhooks asks for, parses it, and says ok. Prints its port; after a request for /expect/N,
// "first" when a delivery comes, and "last" with the N-th. What is not signed well is refused, and not counted.
import crypto from "node:crypto";
import fs from "node:fs";
import https from "node:https";

const AGE_MAX_SECONDS = 300;

let expected = 0;
let come = 0;

function tell(word) {
  process.stdout.write(word + "\n");
}

const [key, cert] = process.argv.slice(2, 4).map((path) => fs.readFileSync(path));
const secret = Buffer.from(process.argv[4].slice("whsec_".length), "base64");

function isSigned(headers, body) {
  const stamp = headers["webhook-timestamp"];
  if (!(Math.abs(Date.now() / 1000 - Number(stamp)) < AGE_MAX_SECONDS)) return false;
  const wanted = crypto.createHmac("sha256", secret).update(`${headers["webhook-id"]}.${stamp}.`).update(body).digest();
  return (headers["webhook-signature"] ?? "").split(" ").some((text) => {
    const given = Buffer.from(text.slice("v1,".length), "base64");
    return text.startsWith("v1,") && given.length === wanted.length && crypto.timingSafeEqual(given, wanted);
  });
}

function answer(response, status, text) {
  response.writeHead(status, {"content-length": text.length});
  response.end(text);
}

const server = https.createServer({key, cert}, (request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    if (request.url.startsWith("/expect/")) {
      expected = Number(request.url.slice("/expect/".length));
      come = 0;
      return answer(response, 200, "ok");
    }
    const body = Buffer.concat(parts);
    if (!isSigned(request.headers, body)) return answer(response, 401, "who?");
    JSON.parse(body.toString());
    answer(response, 200, "ok");
    come++;
    if (come === 1) tell("first");
    if (come === expected) tell("last");
  });
});
server.keepAliveTimeout = 60000;
server.listen(0, "127.0.0.1", () => tell(String(server.address().port)));
process.stdin.resume(); // it goes with whoever started it
process.stdin.on("end", () => process.exit(0));
