// SPDX-License-Identifier: Apache-2.0
//
// http2_server.js - an endpoint of webhooks that speaks HTTP/2, well and badly: the path of a request says how it is answered. Each
// request that has come is told as a line of JSON on standard output; the first line is the port.
// Usage: http2_server.js CERT KEY; serves until its standard input ends.
"use strict";
const fs = require("fs");
const http2 = require("http2");

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = http2.constants;
const server = http2.createSecureServer({ cert: fs.readFileSync(process.argv[2]), key: fs.readFileSync(process.argv[3]) });
let connections = 0;
const hanging = [];

const well = (stream) => {
    stream.respond({ ":status": 200 });
    stream.end("ok");
};

// Whatever came before this request was looked at, it was not; and that was all.
const leave = (stream, code) => {
    const session = stream.session;
    session.goaway(code, stream.id - 2);
    setTimeout(() => session.destroy(), 50);
};

const answers = {
    ok: well,
    // Well, and the connection is to be left: that is how servers are restarted.
    leave: (stream) => {
        well(stream);
        stream.session.goaway(NGHTTP2_NO_ERROR);
    },
    // The second request on a connection: it came too late, and was not looked at. It may be sent again.
    late: (stream) => {
        if (stream.session.count === 1)
            return well(stream);
        return leave(stream, NGHTTP2_NO_ERROR);
    },
    // The same, said of the one request.
    refuse: (stream) => (stream.session.count === 1 ? well(stream) : stream.close(NGHTTP2_REFUSED_STREAM)),
    // Always: too much is asked for.
    calm: (stream) => leave(stream, NGHTTP2_ENHANCE_YOUR_CALM),
    broken: (stream) => stream.close(NGHTTP2_INTERNAL_ERROR),
    "broken-body": (stream) => {
        stream.respond({ ":status": 200 });
        stream.write("half");
        setTimeout(() => stream.close(NGHTTP2_INTERNAL_ERROR), 50);
    },
    // Nothing, and the connection with all that is on it is to be left; whoever came is answered after that.
    hang: (stream) => hanging.push(stream),
    endless: (stream) => {
        stream.respond({ ":status": 200 });
        const more = () => {
            while (!stream.destroyed && stream.write(Buffer.alloc(16384)));
        };
        stream.on("drain", more);
        more();
    },
    "many-headers": (stream) => {
        const headers = { ":status": 200 };
        for (let i = 0; i < 1500; i++)
            headers[`x-${i}`] = "0123456789".repeat(30);
        stream.respond(headers);
        stream.end();
    },
    informing: (stream) => {
        const more = () => {
            for (let i = 0; i < 100 && !stream.destroyed; i++)
                stream.additionalHeaders({ ":status": 103, "x-hint": "1".repeat(100) });
            if (!stream.destroyed)
                setTimeout(more, 1);
        };
        more();
    },
};

server.on("session", (session) => {
    session.number = ++connections;
    session.count = 0;
    session.on("error", () => {}); // the other side may go at any time
});
server.on("stream", (stream, headers) => {
    const body = [];
    const session = stream.session;
    stream.on("error", () => {});
    stream.on("data", (part) => body.push(part));
    stream.on("end", () => {
        if (stream.destroyed)
            return;
        session.count++;
        console.log(JSON.stringify({ path: headers[":path"], headers, body: Buffer.concat(body).toString("base64"),
            connection: session.number, nth: session.count }));
        answers[headers[":path"].split("/")[1]](stream);
    });
});
server.on("sessionError", () => {});
server.on("tlsClientError", () => {});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
// A line releases what hangs, by way of a farewell.
process.stdin.on("data", () => {
    for (const stream of hanging.splice(0)) {
        stream.session.goaway(NGHTTP2_NO_ERROR);
        well(stream);
    }
});
process.stdin.on("end", () => process.exit(0));
