#!/usr/bin/env python3
"""A small HTTPS server with the manners of an API server, good and bad, for the client's tests.

usage: server.py FOLDER    makes a CA, a server's and a client's certificate there, prints its port, ends with its input.
The first part of a path says what happens; docstrings below say how.
"""
import http.server
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def certificates(folder):
    ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl(folder, "req", "-x509", *ec, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test-ca")
    for name, extra in (("server", "subjectAltName=IP:127.0.0.1,DNS:kubernetes.test"), ("client", "extendedKeyUsage=clientAuth")):
        with open(os.path.join(folder, name + ".ext"), "w", encoding="utf-8") as file:
            file.write(extra + "\n")
        openssl(folder, "req", *ec, "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=test-" + name)
        openssl(folder, "x509", "-req", "-in", name + ".csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-out", name + ".crt", "-extfile", name + ".ext")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    counts = {}
    lock = threading.Lock()
    folder = ""

    def log_message(self, *args):
        pass

    def answer(self, code, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def status(self, code, reason, message, headers=()):
        self.answer(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message,
                           "reason": reason, "code": code}, headers)

    def count(self, key):
        """How often it was asked for, this time included."""
        with self.lock:
            self.counts[key] = self.counts.get(key, 0) + 1
            return self.counts[key]

    def reset(self):
        """End the connection with RST."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        socket.socket(fileno=self.connection.detach()).close()

    def handle_any(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query).items()}
        size = int(self.headers.get("Content-Length", 0))
        self.body = self.rfile.read(size).decode()
        getattr(self, "do_" + url.path.split("/")[1], self.do_unknown)()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

    def do_unknown(self):
        self.answer(404, b"404 page not found\n")

    def do_echo(self):
        """What came: method, path, headers, body, and who the client's certificate says it is."""
        peer = self.connection.getpeercert() if hasattr(self.connection, "getpeercert") else None
        names = [v for part in (peer or {}).get("subject", ()) for k, v in part if k == "commonName"]
        self.answer(200, {"method": self.command, "path": self.path, "body": self.body, "peer": names,
                          "headers": {k.lower(): v for k, v in self.headers.items()}})

    def do_fail(self):
        """?code=&reason=&message="""
        self.status(int(self.query["code"]), self.query.get("reason", ""), self.query.get("message", ""))

    def do_slow(self):
        """?ms= before the answer"""
        time.sleep(int(self.query["ms"]) / 1000)
        self.answer(200, {})

    def do_busy(self):
        """?key=&times=&code=&after=: that often "come again", then good"""
        if self.count(self.query["key"]) <= int(self.query["times"]):
            headers = [("Retry-After", self.query["after"])] if "after" in self.query else []
            self.status(int(self.query["code"]), "TooManyRequests", "busy", headers)
        else:
            self.answer(200, {"asked": self.counts[self.query["key"]]})

    def do_secret(self):
        """Only for the token that stands in the file `accepted`"""
        with open(os.path.join(self.folder, "accepted"), encoding="utf-8") as file:
            good = "Bearer " + file.read().strip()
        with self.lock:
            self.counts["secret"] = self.counts.get("secret", 0) + 1
        if self.headers.get("Authorization") == good:
            self.answer(200, {"asked": self.counts["secret"]})
        else:
            self.status(401, "Unauthorized", "Unauthorized")

    def do_reset(self):
        """?key=: counted"""
        if "key" in self.query:
            self.count(self.query["key"])
        self.reset()

    def do_big(self):
        """?size="""
        self.answer(200, b"x" * int(self.query["size"]))

    def do_stream(self):
        """?lines=&gap=: numbered lines in chunks, `gap` ms after each; &cut=&how=: after so many bytes the connection is
        ended, by "rst" or by "fin" (no last chunk)"""
        lines = b"".join(b'{"line":%d}\n' % i for i in range(int(self.query["lines"])))
        cut = int(self.query.get("cut", -1))
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in (lines if cut < 0 else lines[:cut]).splitlines(keepends=True):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
            time.sleep(int(self.query.get("gap", 0)) / 1000)
        if cut < 0:
            self.wfile.write(b"0\r\n\r\n")
        elif self.query["how"] == "rst":
            self.reset()
        else:
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, context):
        super().__init__(("127.0.0.1", 0), Handler)
        self.context = context

    def finish_request(self, request, client_address):
        """TLS in the connection's own thread, so that one that says nothing holds up nobody."""
        try:
            with self.context.wrap_socket(request, server_side=True) as wrapped:
                self.RequestHandlerClass(wrapped, client_address, self)
        except OSError:
            pass


def main():
    folder = sys.argv[1]
    certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "server.crt"), os.path.join(folder, "server.key"))
    context.load_verify_locations(os.path.join(folder, "ca.crt"))
    context.verify_mode = ssl.CERT_OPTIONAL
    Handler.folder = folder
    server = Server(context)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)  # whatever its threads are at


main()
