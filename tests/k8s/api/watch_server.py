#!/usr/bin/env python3
"""A small API server: objects by path, versions, lists in pages, watches with bookmarks, conflicts; misbehaves when told.

usage: watch_server.py    prints its port; ends when its input does.

Any path is a collection (.../configmaps) or an object of one (.../configmaps/NAME); it begins empty. POST /ctl with JSON:
  {"do": "faults", "faults": [{"at": "list" | "page" | "watch" | "read" | "write" | "status", "what": ..., "times": 1,
                               "of": "part of a name; of a list its path"}, ...]}
      what: "500", "403", "404", "410" (as an answer), "reset" (no answer), "garbage"; of a watch also "end" (at once), "cut" (in the
      middle of its next event), "error410", "error500" (an ERROR event), "silence", "late" (its next event comes after
      one that is older, and twice), "back" (a bookmark of the past); of a write also "lost" (done, but not answered), "held" and
      "held403" (it waits, then is done or refused)
  {"do": "let"}                 what is held goes on
  {"do": "left"}                answers the faults that nothing has met yet
  {"do": "compact"}             what came before is forgotten: older watches and pages get 410
  {"do": "set_back", "by": N}   versions go back, as after the restoring of a backup; all watches end
  {"do": "bookmark"}            to every watch
  {"do": "chaos", "path": P, "seed": S, "changes": N, "faults": F}   random changes, every so often a random fault
  {"do": "settle"}              answers once all of these changes are done
  {"do": "calm"}                no more changes, no more faults; answers once the last change is done
  {"do": "begin"}               everything as at the start: for the next test
  {"do": "asked"}               answers what was asked for so far: ["GET /path?query accept", ...]
"""
import http.server
import json
import os
import random
import socket
import struct
import sys
import threading
import time
import urllib.parse
import uuid

lock = threading.Condition()
version = 1
objects = {}  # collection -> {key -> object}
history = []  # (version, collection, type, object)
compacted = 0  # versions up to this are forgotten
snapshots = {}  # token -> (version, list of objects)
faults = []
asked = []
bookmarks = 0
era = 0  # of versions: another one after set_back
world = 0  # how often it began: what a client of an earlier test left on its way does nothing in this one
stop = False
let = 0  # how often what was held might go on


def next_version():
    global version
    version += 1
    return version


def record(kind, collection, thing):
    history.append((int(thing["metadata"]["resourceVersion"]), collection, kind, json.loads(json.dumps(thing))))
    lock.notify_all()


def put(collection, key, thing):
    """Make or replace; the lock is held."""
    there = objects.setdefault(collection, {})
    old = there.get(key)
    meta = thing.setdefault("metadata", {})
    meta["uid"] = old["metadata"]["uid"] if old else str(uuid.uuid4())
    meta["name"] = key
    parts = collection.split("/")
    if "namespaces" in parts:
        meta["namespace"] = parts[parts.index("namespaces") + 1]
    meta["resourceVersion"] = str(next_version())
    there[key] = thing
    record("MODIFIED" if old else "ADDED", collection, thing)
    return thing


def remove(collection, key):
    thing = json.loads(json.dumps(objects[collection].pop(key)))
    thing["metadata"].update(resourceVersion=str(next_version()), deletionTimestamp="2026-11-21T10:00:00Z")
    record("DELETED", collection, thing)
    return thing


def merge(into, patch):
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def selects(query, thing):
    for term in filter(None, query.get("labelSelector", "").split(",")):
        if term.startswith("!"):
            if term[1:] in thing["metadata"].get("labels", {}):
                return False
            continue
        key, value = term.split("=")
        if thing["metadata"].get("labels", {}).get(key) != value:
            return False
    return True


def change_at_random(rng, path):
    there = objects.setdefault(path, {})
    what = rng.random()
    if what < 0.5 or not there:
        name = "thing-%d" % rng.randrange(60)
        put(path, name, {"metadata": {"labels": {"on": rng.choice(["yes", "no"])},
                                      "managedFields": [{"junk": "}" * 50}]}, "data": {"value": str(rng.random())}})
    elif what < 0.75:
        put(path, rng.choice(sorted(there)), {"metadata": {"labels": {"on": "yes"}}, "data": {"value": str(rng.random())}})
    else:
        remove(path, rng.choice(sorted(there)))


def chaos(command):
    rng = random.Random(command["seed"])
    for n in range(command["changes"]):
        with lock:
            if stop_chaos.is_set():
                return
            change_at_random(rng, command["path"])
            if rng.random() < command["faults"]:
                what = rng.choice(["watch"] * 8 + ["list", "page", "compact", "bookmark"])
                if what == "compact":
                    compact()
                elif what == "bookmark":
                    bookmark()
                else:
                    kinds = ["500", "410", "reset", "garbage"]
                    kinds += ["end", "cut", "error410", "error500", "late"] if what == "watch" else []
                    faults.append({"at": what, "what": rng.choice(kinds)})
                    lock.notify_all()
        time.sleep(rng.random() * 0.004)


stop_chaos = threading.Event()
chaos_threads = []


def compact():
    global compacted
    compacted = version
    snapshots.clear()
    lock.notify_all()


def bookmark():
    global bookmarks
    bookmarks += 1
    lock.notify_all()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    world = None  # that its connection belongs to

    def setup(self):
        super().setup()
        self.world = self.server.worlds.pop(id(self.request))

    def log_message(self, *args):
        pass

    def answer(self, code, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def status(self, code, reason, message):
        self.answer(code, {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code})

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        socket.socket(fileno=self.connection.detach()).close()

    def in_time(self):
        """The lock is held."""
        if self.world != world:
            raise ConnectionAbortedError("its test is over")

    def fault(self, at, name=""):
        """The next one for this place, and for a thing of this name where it says so, or None; the lock is held."""
        self.in_time()
        for fault in faults:
            if fault["at"] == at and fault.get("of", "") in name:
                fault["times"] = fault.get("times", 1) - 1
                if fault["times"] <= 0:
                    faults.remove(fault)
                return fault["what"]
        return None

    def misbehave(self, what):
        """True: that was all there is to this request."""
        if what in ("500", "403", "404", "410"):
            self.status(int(what), {"500": "InternalError", "403": "Forbidden", "404": "NotFound", "410": "Expired"}[what], "told to")
        elif what == "reset":
            self.reset()
        elif what == "garbage":
            self.answer(200, b'{"kind":"List","items":[{"a":}')
        else:
            return False
        return True

    def handle_any(self):
        try:
            self.handle_it()
        except ConnectionError:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

    def handle_it(self):
        url = urllib.parse.urlsplit(self.path)
        query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()}
        size = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(size) or b"null")
        if url.path == "/ctl":
            return self.control(body)
        with lock:
            self.in_time()
            asked.append("%s %s %s" % (self.command, self.path, self.headers.get("Accept", "")))
        if "watch" in query:
            return self.watch(url.path, query)
        parent, name = url.path.rsplit("/", 1)
        if self.command == "GET" and (url.path in objects or "limit" in query):
            return self.list(url.path, query)
        if name == "status" and self.command == "PATCH":
            return self.write_status(*parent.rsplit("/", 1), body)
        if self.command == "POST":
            return self.write(url.path, body["metadata"]["name"], body)
        if self.command == "GET":
            with lock:
                what = self.fault("read", name)
                thing = objects.get(parent, {}).get(name)
            if what and self.misbehave(what):
                return None
            return self.answer(200, thing) if thing else self.status(404, "NotFound", name + " not found")
        return self.write(parent, name, body)

    # ---- commands

    def control(self, command):
        global compacted, version, era, world, let
        answer = {}
        do = command["do"]
        if do == "calm":
            stop_chaos.set()
        if do in ("calm", "settle"):
            for thread in chaos_threads:
                thread.join()
            chaos_threads.clear()
            stop_chaos.clear()
        with lock:
            if do == "calm":
                faults.clear()
            elif do == "faults":
                faults.extend(command["faults"])
            elif do == "let":
                let += 1
            elif do == "left":
                answer = list(faults)
            elif do == "compact":
                compact()
            elif do == "bookmark":
                bookmark()
            elif do == "set_back":
                version -= command["by"]
                era += 1
                history.clear()
                compacted = 0
                for things in objects.values():
                    for thing in things.values():
                        thing["metadata"]["resourceVersion"] = str(next_version())
            elif do == "asked":
                answer = list(asked)
            elif do == "begin":
                version, compacted = 1, 0
                era += 1
                world += 1
                let += 1
                self.world = world
                for state in (objects, history, snapshots, faults, asked):
                    state.clear()
            elif do == "chaos":
                thread = threading.Thread(target=chaos, args=(command,), daemon=True)
                chaos_threads.append(thread)
                thread.start()
            lock.notify_all()
        self.answer(200, answer)

    # ---- writes

    def held(self, what):
        """What is left of the fault when it may go on; the lock is held, but not meanwhile."""
        if not what or not what.startswith("held"):
            return what
        before = let
        while before == let and not stop:
            lock.wait()
        self.in_time()
        return what[len("held") :]

    def write(self, collection, name, body):
        with lock:
            what = self.held(self.fault("write", name))
            if what and self.misbehave(what):
                return
            old = objects.get(collection, {}).get(name)
            if self.command == "POST" and old:
                reply = (409, "AlreadyExists")
            elif self.command != "POST" and not old and "apply-patch" not in self.headers.get("Content-Type", ""):
                reply = (404, "NotFound")
            elif self.command == "PUT" and body["metadata"].get("resourceVersion") not in (
                    None, old["metadata"]["resourceVersion"]):
                reply = (409, "Conflict")
            elif self.command == "DELETE" and any(
                    old["metadata"][key] != value for key, value in ((body or {}).get("preconditions") or {}).items()):
                reply = (409, "Conflict")
            elif self.command == "DELETE":
                reply = (200, remove(collection, name))
            else:
                if self.command == "PATCH" and old:
                    fresh = json.loads(json.dumps(old))
                    merge(fresh, body)
                    body = fresh
                reply = (200 if old else 201, put(collection, name, body))
            reply = (reply[0], json.loads(json.dumps(reply[1])))
        if "as=PartialObjectMetadata" in self.headers.get("Accept", "") and isinstance(reply[1], dict):
            reply = (reply[0], {"kind": "PartialObjectMetadata", "metadata": reply[1]["metadata"]})
        if what == "lost":
            return self.reset()
        if isinstance(reply[1], str):
            return self.status(reply[0], reply[1], "%s %s: %s" % (self.command, name, reply[1]))
        return self.answer(*reply)

    def write_status(self, collection, name, patch):
        """A JSON patch as the operator writes it: the version that it knows, then the status."""
        known, status = patch
        with lock:
            what = self.fault("status")
            if what and self.misbehave(what):
                return
            old = objects.get(collection, {}).get(name)
            reply = None
            if old and known["value"] == old["metadata"]["resourceVersion"]:
                fresh = json.loads(json.dumps(old))
                fresh["status"] = status["value"]
                reply = json.loads(json.dumps(put(collection, name, fresh)))
        if reply:
            return self.answer(200, reply)
        return self.status(409, "Conflict", "newer") if old else self.status(404, "NotFound", name)

    # ---- lists

    def list(self, path, query):
        token = query.get("continue")
        with lock:
            what = self.fault("page" if token else "list", path)
            if token and token not in snapshots:
                what = "410"
            if not token:
                things = [json.loads(json.dumps(t)) for _, t in sorted(objects.get(path, {}).items()) if selects(query, t)]
                at = version
            elif token in snapshots:
                at, things = snapshots[token]
            limit = int(query.get("limit", 0)) or len(things or []) + 1
            if not what:
                page, rest = things[:limit], things[limit:]
                meta = {"resourceVersion": str(at)}
                if rest:
                    meta["continue"] = uuid.uuid4().hex + "=/+"
                    snapshots[meta["continue"]] = (at, rest)
        if what:
            self.misbehave(what)
        else:
            self.answer(200, {"kind": "List", "metadata": meta, "items": page})

    # ---- watches

    def watch(self, path, query):
        since = int(query["resourceVersion"])
        with lock:
            what = self.fault("watch")
            if since < compacted:
                what = "410"
        if what and self.misbehave(what):
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        if what == "silence":
            mine = era
            while not stop and era == mine:
                time.sleep(0.05)
            return self.reset()
        if what == "end":
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_events(path, query, since, what)

    def event(self, kind, thing):
        line = json.dumps({"type": kind, "object": thing}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.wfile.flush()

    def cut(self, kind, thing):
        line = json.dumps({"type": kind, "object": thing}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s" % (len(line), line[: len(line) // 2]))
        self.wfile.flush()
        self.reset()

    def send_events(self, path, query, since, what):
        mine, shown = era, bookmarks
        if what in ("error410", "error500"):
            self.event("ERROR", {"kind": "Status", "code": int(what[5:]), "message": "told to", "status": "Failure"})
            self.wfile.write(b"0\r\n\r\n")
            return
        at, known = 0, {}  # known: uid -> selected before
        with lock:
            for v, c, kind, thing in history:
                if c == path and v <= since:
                    known[thing["metadata"]["uid"]] = kind != "DELETED" and selects(query, thing)
        ends = time.monotonic() + int(query.get("timeoutSeconds", 600))
        while True:
            with lock:
                while not stop and era == mine and at == len(history) and shown == bookmarks and not self.wanted():
                    if time.monotonic() > ends or not lock.wait(timeout=1) and self.gone():
                        break
                if era != mine or stop or time.monotonic() > ends:
                    break
                news, at = history[at:], len(history)
                mark = version if shown != bookmarks else 0
                shown = bookmarks
                what = what or self.fault("watch_now")
            if what == "back":
                mark, what = 1, None
            for v, c, kind, thing in news:
                if c != path or v <= since:
                    continue
                uid = thing["metadata"]["uid"]
                was, now = known.get(uid, False), kind != "DELETED" and selects(query, thing)
                known[uid] = now
                if not was and not now:
                    continue
                told = "ADDED" if not was else "DELETED" if not now else "MODIFIED"
                if what == "cut":
                    return self.cut(told, thing)
                if what == "late":
                    old = json.loads(json.dumps(thing))
                    old["metadata"]["resourceVersion"] = str(max(1, since - 3))
                    self.event("MODIFIED", old)
                    self.event(told, thing)
                    what = None
                self.event(told, thing)
            if mark:
                self.event("BOOKMARK", {"kind": "Thing", "metadata": {"resourceVersion": str(mark), "creationTimestamp": None}})
        self.wfile.write(b"0\r\n\r\n")

    def wanted(self):
        return any(f["at"] == "watch_now" for f in faults)

    def gone(self):
        """Did the client leave?"""
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    worlds = {}  # by socket

    def process_request(self, request, client_address):
        """Connections come in the order in which they were made, their threads in any."""
        with lock:
            self.worlds[id(request)] = world
        super().process_request(request, client_address)


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)  # whatever its threads are at


main()
