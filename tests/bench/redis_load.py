# SPDX-License-Identifier: MIT
"""A client for redis-server: fills it, then keeps changing a part of it, and
makes it save in the background now and then.

    redis_load.py PORT KEYS BYTES SETS_PER_SECOND SAVE_SECONDS

Prints READY after filling. Ends if the server no longer answers, and after an
hour.
"""

import random
import socket
import sys
import time

BATCH = 50


class Redis:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.answers = self.socket.makefile("rb")

    def send(self, commands):
        """Each answer is one line."""
        text = b""
        for words in commands:
            text += b"*%d\r\n" % len(words)
            text += b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
        self.socket.sendall(text)
        for _ in commands:
            if not self.answers.readline():
                sys.exit(0)


def set_keys(redis, keys, value):
    redis.send([(b"SET", b"key:%d" % key, value) for key in keys])


def main():
    port, n_keys, size, per_second, save_seconds = map(int, sys.argv[1:])
    redis = Redis(port)
    value = b"x" * size
    for first in range(0, n_keys, BATCH):
        set_keys(redis, range(first, first + BATCH), value)
    print("READY", flush=True)
    begin = time.monotonic()
    due = begin + save_seconds
    for number in range(3600 * per_second // BATCH):
        keys = [random.randrange(n_keys) for _ in range(BATCH)]
        set_keys(redis, keys, value)
        now = time.monotonic()
        if now > due:
            redis.send([(b"BGSAVE",)])
            # It must not save at the same point of each interval.
            due = now + save_seconds * random.uniform(0.7, 1.3)
        time.sleep(max(0, begin + number * BATCH / per_second - now))


if __name__ == "__main__":
    try:
        main()
    except (OSError, KeyboardInterrupt):
        pass
