"""
Clients that keep their connections and read nothing, or little, of the responses; Node has no access to these socket options.

A line of JSON on standard input lists the clients: {"port", "gapSeconds", "callers": [{"from", "sends", "isNarrow", "bytesPerSecond", "sendsEachSecond"}]}. A line of
JSON on standard output reports each second, for each client: whether the connection is open, the response status, the length
of the response, and how much of it the server process still buffers itself. The program ends when its standard input ends.
"""

import array
import fcntl
import json
import re
import resource
import select
import socket
import sys
import termios
import time

# Smaller than the listen backlog of any server.
WAVE = 100
WAVE_SECONDS = 0.02
TICKS_A_SECOND = 4
ESTABLISHED = 1
HEAD = re.compile(rb"HTTP/1\.1 (\d+) .*?\r\ncontent-length: (\d+)\r\n(?:.*?\r\n)?\r\n", re.I | re.S)


class Caller:
    def __init__(self, port, options):
        self.bytes_per_second = options["bytesPerSecond"]
        self.sends_each_second = options["sendsEachSecond"].encode()
        self.status = self.length = self.read_bytes = 0
        self.socket = socket.socket()
        self.isOpen = True
        try:
            if options["isNarrow"]:
                # Keeps the kernel buffers of both ends as small as possible.
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 100)
            self.socket.settimeout(10)
            self.socket.bind((options["from"], 0))
            self.socket.connect(("127.0.0.1", port))
            self.name = self.socket.getsockname()
            self.socket.setblocking(False)
            self.send(options["sends"].encode())
        except OSError:
            self.end()

    def end(self):
        self.isOpen = False
        self.socket.close()

    def send(self, text):
        try:
            if text:
                self.socket.send(text)
        except BlockingIOError:
            pass

    def tick(self, is_second):
        if not self.isOpen:
            return
        try:
            if self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != ESTABLISHED:
                return self.end()
            if self.status == 0:
                self.read_head()
            if is_second:
                self.send(self.sends_each_second)
            if self.bytes_per_second and self.status:
                self.read_bytes += len(self.socket.recv(max(1, self.bytes_per_second // TICKS_A_SECOND)))
        except BlockingIOError:
            pass
        except OSError:
            self.end()

    def read_head(self):
        found = HEAD.match(self.socket.recv(4096, socket.MSG_PEEK))
        if found:
            self.status = int(found[1])
            self.length = found.end() + int(found[2])

    def left(self, buffered):
        """Returns how much of the response is neither read nor in a kernel buffer; bytes."""
        if not self.isOpen:
            return 0
        waiting = array.array("i", [0])
        fcntl.ioctl(self.socket, termios.FIONREAD, waiting)
        return max(0, self.length - self.read_bytes - waiting[0] - buffered.get(hex_of(self.name), 0))


def hex_of(name):
    return "%s:%04X" % (socket.inet_aton(name[0])[::-1].hex().upper(), name[1])


def buffered_for(port):
    """Returns the bytes that the kernel buffers for each client of a port, by the client's address as in /proc/net/tcp."""
    buffered = {}
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"]:
        try:
            lines = open(table).read().split("\n")[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 4 and fields[1].endswith(":%04X" % port):
                buffered[fields[2][-13:]] = int(fields[4].split(":")[0], 16)
    return buffered


def main():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    options = json.loads(sys.stdin.readline())
    callers = []
    for each in options["callers"]:
        callers.append(Caller(options["port"], each))
        time.sleep(options["gapSeconds"])
        if len(callers) % WAVE == 0:
            time.sleep(WAVE_SECONDS)
    ticks = 0
    while not select.select([sys.stdin], [], [], 1 / TICKS_A_SECOND)[0]:
        is_second = ticks % TICKS_A_SECOND == 0
        ticks += 1
        for caller in callers:
            caller.tick(is_second)
        if is_second:
            buffered = buffered_for(options["port"])
            states = [
                {"isOpen": each.isOpen, "status": each.status, "length": each.length, "left": each.left(buffered)}
                for each in callers
            ]
            print(json.dumps(states), flush=True)


main()
