#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deliver_rules.py - what must hold of deliveries, whatever has gone wrong: each rule gives what breaks it.

As a program it shows that each rule finds what it is there for: deliver_rules.py
"""

import base64
import copy
import hashlib
import hmac
import sys
import unittest
from pathlib import Path

OK = 200

# events:   {webhook id: {"body", "key", "endpoints": [name], "is_committed", "number"}}; numbers rise in the order of publishing
# requests: as deliver_sink.py has them
# ledger:   {(endpoint, webhook id): [{"owner", "outcome"}]}, attempts in their order
# secrets:  {endpoint: secret};  ordered: names of endpoints that asked for order;  pauses: {owner: how often it was stopped}


def jobs_of(history):
    """{(endpoint, id): its requests, in the order in which they came}"""
    jobs = {}
    for request in sorted(history["requests"], key=lambda r: r["hi"]):
        jobs.setdefault((request["endpoint"], request["id"]), []).append(request)
    return jobs


def lost(history):
    """At least one delivery that was answered well, of each event that was committed, to each endpoint that wants it."""
    jobs = jobs_of(history)
    for event_id, event in history["events"].items():
        for endpoint in event["endpoints"] if event["is_committed"] else []:
            if not any(r["status"] == OK for r in jobs.get((endpoint, event_id), [])):
                yield f"{event_id} was never delivered to {endpoint}"


def unknown(history):
    """Nothing is sent that was not published, or was rolled back, or that the endpoint does not want."""
    for endpoint, event_id in jobs_of(history):
        event = history["events"].get(event_id)
        if event is None or not event["is_committed"] or endpoint not in event["endpoints"]:
            yield f"{event_id} was sent to {endpoint}, and should not have been"


def changed(history):
    """The same body each time."""
    for request in history["requests"]:
        event = history["events"].get(request["id"])
        if event is not None and request["body"] != event["body"]:
            yield f"{request['id']} was sent to {request['endpoint']} with another body"


def unsigned(history):
    """Each request has the signature that Standard Webhooks demands."""
    for request in history["requests"]:
        key = base64.b64decode(history["secrets"][request["endpoint"]].removeprefix("whsec_"))
        what = f"{request['id']}.{request['time']}.".encode() + request["body"]
        wanted = "v1," + base64.b64encode(hmac.new(key, what, hashlib.sha256).digest()).decode()
        if request["signature"] != wanted:
            yield f"{request['id']} was sent to {request['endpoint']} with another signature"


def disordered(history):
    """Where order was asked for, nothing is sent before what came before it, within its key, was answered well."""
    jobs = jobs_of(history)
    events = history["events"]
    for endpoint in history["ordered"]:
        before = {}
        for event_id in sorted((e for e in events if events[e]["is_committed"]), key=lambda e: events[e]["number"]):
            event = events[event_id]
            if event["key"] is None or endpoint not in event["endpoints"]:
                continue
            earlier = before.get(event["key"])
            before[event["key"]] = event_id
            if earlier is None:
                continue
            answered = min((r["answered"] for r in jobs.get((endpoint, earlier), []) if r["status"] == OK), default=float("inf"))
            if any(r["hi"] < answered for r in jobs.get((endpoint, event_id), [])):
                yield f"{event_id} was sent to {endpoint} before {earlier} was delivered"


def claimed(history):
    """What is on record as delivered was answered well, to whom it is recorded of."""
    jobs = jobs_of(history)
    for job, attempts in history["ledger"].items():
        for attempt in attempts:
            if attempt["outcome"] == "DISPATCHED" and not any(
                    r["status"] == OK and r["owner"] == attempt["owner"] for r in jobs.get(job, [])):
                yield f"{job} is on record as delivered by {attempt['owner']}, and was not"


def late_requests(history):
    """Requests that came certainly after somebody else, who had the lease by then, had sent the same: (job, owner)."""
    for job, requests in jobs_of(history).items():
        owners = [a["owner"] for a in history["ledger"].get(job, [])]
        at, sent = 0, []
        for request in requests:
            places = [i for i in range(at, len(owners)) if owners[i] == request["owner"]]
            if places:
                at = places[0]
                sent.append((at, request))
                continue
            mine = [i for i, owner in enumerate(owners) if owner == request["owner"]]
            last = mine[-1] if mine else -1
            following = next((r for i, r in sent if i > last), None)
            if following is None or request["lo"] >= following["hi"]:
                yield job, request["owner"]


def overlapping(history):
    """
    Whoever has lost a lease sends nothing more, but for a request that was on the wire when it went. The thread that sends asks
    directly before each send: so that is one, at the most, of somebody who was stopped in between; and none of anybody else.
    """
    late = {}
    for job, owner in late_requests(history):
        late.setdefault(owner, []).append(job)
    for owner, jobs in late.items():
        if len(jobs) > history["pauses"].get(owner, 0):
            yield f"{owner} sent {jobs} after it had lost the lease; it was stopped {history['pauses'].get(owner, 0)} times"


RULES = {rule.__name__: rule for rule in (lost, unknown, changed, unsigned, disordered, claimed, overlapping)}


# ---- each of them finds what it is there for

SECRET = "whsec_" + base64.b64encode(b"a secret of 24 bytes ...").decode()


def request_of(event_id, owner, at, status=OK, endpoint="crm", body=b"body"):
    what = f"{event_id}.1.".encode() + body
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    return {"owner": owner, "endpoint": endpoint, "id": event_id, "time": "1", "body": body, "lo": at - 0.1, "hi": at, "status": status,
            "answered": at + 0.5 if status else None,
            "signature": "v1," + base64.b64encode(hmac.new(key, what, hashlib.sha256).digest()).decode()}


def good_history():
    """a and b of one key: a failed once, was lost once by one and delivered by two, then b."""
    event = {"body": b"body", "key": "k", "endpoints": ["crm"], "is_committed": True}
    return {
        "events": {"a": {**event, "number": 1}, "b": {**event, "number": 2}, "c": {**event, "number": 3, "is_committed": False}},
        "requests": [request_of("a", "one", 1, status=500), request_of("a", "one", 2, status=None), request_of("a", "two", 5),
                     request_of("b", "one", 7)],
        "ledger": {("crm", "a"): [{"owner": "one", "outcome": "RETRYABLE"}, {"owner": "one", "outcome": "ZOMBIE_REQUEUE"},
                                  {"owner": "two", "outcome": "DISPATCHED"}],
                   ("crm", "b"): [{"owner": "one", "outcome": "DISPATCHED"}]},
        "secrets": {"crm": SECRET}, "ordered": ["crm"], "pauses": {"one": 1},
    }


class RulesTest(unittest.TestCase):
    def found(self, change):
        history = copy.deepcopy(good_history())
        change(history)
        return {name for name, rule in RULES.items() if list(rule(history))}

    def test_what_is_good(self):
        self.assertEqual(self.found(lambda h: None), set())

    def test_what_is_not(self):
        late = request_of("a", "one", 6)
        cases = {
            "lost": lambda h: h["requests"][3].update(status=500),
            "unknown": lambda h: h["requests"].append(request_of("c", "one", 9)),
            "changed": lambda h: h["requests"].append(request_of("b", "one", 8, body=b"other")),
            "unsigned": lambda h: h["requests"][0].update(time="2"),
            "disordered": lambda h: h["requests"][3].update(lo=5.1, hi=5.2),
            "claimed": lambda h: h["ledger"][("crm", "b")][0].update(owner="two"),
            "overlapping": lambda h: h.update(requests=h["requests"] + [late], pauses={}),
        }
        for name, change in cases.items():
            self.assertIn(name, self.found(change), name)
        self.assertEqual(set(cases), set(RULES))
        self.assertEqual(self.found(lambda h: h["requests"].append(request_of("x", "one", 9))), {"unknown"})

    def test_one_that_was_on_the_wire(self):
        """Of one that was stopped, one; and where it is not certain what came first, as many as there are."""
        def late(*requests, **more):
            return lambda h: h.update(requests=h["requests"] + [request_of("a", "one", at) for at in requests], **more)
        self.assertEqual(self.found(late(6)), set())
        self.assertEqual(self.found(late(6, 6.2)), {"overlapping"})
        self.assertEqual(self.found(late(5.05, 5.06, pauses={})), set())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
    import tap
    tap.main()
