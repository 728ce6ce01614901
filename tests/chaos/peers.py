"""peers - what somebody needs who speaks to a run without being one of ours: the messages as docs/wire.md describes them,
msgpack, and DEALER sockets of the installed libzmq. Only the standard library.
"""

import ctypes
import ctypes.util
import os
import re
import struct

SOURCE = os.environ["TT_SOURCE_DIR"]

# ---- the messages ------------------------------------------------------------------------------------------------------


def s_tables():
    """docs/wire.md: ({message: (id, [(field, type, limit)])}, {record: the same list}, its version)."""
    messages, records, fields, wire = {}, {}, [], 0
    with open(os.path.join(SOURCE, "docs", "wire.md"), encoding="utf-8") as file:
        for line in file:
            title = re.match(r"### (\w+)(?: \((\d+)\))?$", line)
            row = re.match(r"\| `(\w+)` \| (\S+) \| (\d*) \|", line)
            version = re.match(r"Version: (\d+)\.$", line)
            wire = int(version[1]) if version else wire
            if title:
                fields = []
                if title[2]:
                    messages[title[1]] = int(title[2]), fields
                else:
                    records[title[1]] = fields
            elif row:
                fields.append((row[1], row[2].strip("[]`"), int(row[3] or 0)))
    return messages, records, wire


MESSAGES, RECORDS, WIRE = s_tables()
ROLES = {2: "collector", 3: "learner", 4: "aggregator", 5: "controller", 6: "client"}


def pack(value):
    """msgpack of None, bool, int, float, str, bytes, list, dict, and of a list of pairs as a map."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        if value < 0:
            return b"\xd3" + struct.pack(">q", value)
        return struct.pack("B", value) if value < 128 else b"\xcf" + struct.pack(">Q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogateescape")
        return b"\xdb" + struct.pack(">I", len(data)) + data
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    return b"\xdf" + struct.pack(">I", len(value)) + b"".join(pack(key) + pack(item) for key, item in value.items())


def message(name, **fields):
    """Frame 0."""
    return pack({"m": MESSAGES[name][0], **fields})


def unpack(data):
    """One value of msgpack, as our processes write it."""
    return s_unpack(data, 0)[0]


def s_unpack(data, at):
    kind = data[at]
    at += 1
    if kind < 0x80:
        return kind, at
    if kind >= 0xe0:
        return kind - 256, at
    if kind < 0x90:
        return s_map(data, at, kind & 15)
    if kind < 0xa0:
        return s_list(data, at, kind & 15)
    if kind < 0xc0:
        return s_bytes(data, at, kind & 31)
    if kind in (0xc0, 0xc2, 0xc3):
        return {0xc0: None, 0xc2: False, 0xc3: True}[kind], at
    if 0xca <= kind <= 0xd3:
        code = {0xca: ">f", 0xcb: ">d", 0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q", 0xd0: ">b", 0xd1: ">h",
                0xd2: ">i", 0xd3: ">q"}[kind]
        size = struct.calcsize(code)
        return struct.unpack_from(code, data, at)[0], at + size
    width = {0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4}[kind]
    count = int.from_bytes(data[at:at + width], "big")
    at += width
    return (s_bytes if kind < 0xdc else s_list if kind < 0xde else s_map)(data, at, count)


def s_bytes(data, at, count):
    return data[at:at + count].decode("utf-8", "surrogateescape"), at + count


def s_list(data, at, count):
    out = []
    for _ in range(count):
        item, at = s_unpack(data, at)
        out.append(item)
    return out, at


def s_map(data, at, count):
    out = {}
    for _ in range(count):
        key, at = s_unpack(data, at)
        out[key], at = s_unpack(data, at)
    return out, at


# ---- sockets -----------------------------------------------------------------------------------------------------------

DEALER = 5
ROUTING_ID, LINGER, RECONNECT_IVL, RCVTIMEO, SNDTIMEO = 5, 17, 18, 27, 28
CURVE_PUBLICKEY, CURVE_SECRETKEY, CURVE_SERVERKEY = 48, 49, 50
SNDMORE, RCVMORE = 2, 13

s_zmq = ctypes.CDLL(ctypes.util.find_library("zmq") or "libzmq.so.5", use_errno=True)
for s_name in ("zmq_ctx_new", "zmq_socket"):
    getattr(s_zmq, s_name).restype = ctypes.c_void_p
s_zmq.zmq_socket.argtypes = [ctypes.c_void_p, ctypes.c_int]
s_zmq.zmq_connect.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
s_zmq.zmq_setsockopt.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
s_zmq.zmq_getsockopt.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
s_zmq.zmq_send.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
s_zmq.zmq_recv.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Context:
    """What sockets are made in: at most 1023 of them."""

    def __init__(self):
        self.handle = s_zmq.zmq_ctx_new()


class Socket:
    """A DEALER connected to one endpoint. keys: (public, secret) in Z85 for a tcp endpoint that asks for them.

    It is never closed: libzmq 4.3.4 aborts when a connection is cut while a socket with a half-sent message is closed
    (session_base.cpp:260), and whoever speaks as we do is cut off all the time. The process's end takes them all."""

    def __init__(self, context, endpoint, identity=None, keys=None, wait_ms=0):
        self.handle = s_zmq.zmq_socket(context.handle, DEALER)
        self.buffer = ctypes.create_string_buffer(4 << 20)
        for option, value in ((LINGER, 0), (RECONNECT_IVL, -1), (RCVTIMEO, wait_ms), (SNDTIMEO, wait_ms)):
            self._set(option, struct.pack("i", value))
        if identity is not None:
            self._set(ROUTING_ID, identity)
        if keys:
            public, secret = keys
            self._set(CURVE_SERVERKEY, public)
            self._set(CURVE_PUBLICKEY, public)
            self._set(CURVE_SECRETKEY, secret)
        if s_zmq.zmq_connect(self.handle, endpoint.encode()) != 0:
            raise OSError(f"connect {endpoint}")

    def _set(self, option, value):
        if s_zmq.zmq_setsockopt(self.handle, option, value, len(value)) != 0:
            raise OSError(f"option {option}")

    def send(self, *frames):
        """False: it does not take them now."""
        for i, frame in enumerate(frames):
            if s_zmq.zmq_send(self.handle, frame, len(frame), SNDMORE if i + 1 < len(frames) else 0) < 0:
                return False
        return True

    def receive(self):
        """The frames of a message; None when none came in time."""
        frames, more = [], ctypes.c_int(1)
        while more.value:
            size = s_zmq.zmq_recv(self.handle, self.buffer, len(self.buffer), 0)
            if size < 0:
                return None
            frames.append(self.buffer.raw[:size])
            length = ctypes.c_size_t(ctypes.sizeof(more))
            s_zmq.zmq_getsockopt(self.handle, RCVMORE, ctypes.byref(more), ctypes.byref(length))
        return frames


def keys(path):
    """(public, secret) of a job's key file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return tuple(re.search(rf'{name}-key = "([^"]+)"', text)[1].encode() for name in ("public", "secret"))
