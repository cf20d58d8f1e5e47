# SPDX-License-Identifier: Apache-2.0
"""Sums over ranks through TCP, for engines without a communication library: rank 0 adds all ranks' numbers in their
order and sends the sum back. For examples and tests; a real engine brings its own collectives."""
import socket
import struct
import time

import numpy


def _receive(connection, size):
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("a rank has closed its connection")
        data += part
    return bytes(data)


class Star:
    """Made once a process. Each case opens connections of its own, so that nothing of a failed one is left in them."""

    def __init__(self, ranks):
        self._ranks, self._number, self._peers = ranks, None, []
        self._listener = None
        if ranks.world > 1 and ranks.rank == 0:
            self._listener = socket.create_server((ranks.master_addr, ranks.master_port), backlog=ranks.world)

    def open(self, number, timeout_s):
        """At the start of a case, with its number, by every rank; each later call is bounded by timeout_s."""
        self.close()
        self._number = number
        limit = time.monotonic() + timeout_s
        if self._listener:
            self._accept(limit, timeout_s)
        elif self._ranks.world > 1:
            self._peers = [self._connect(limit, timeout_s)]

    def close(self):
        for peer in self._peers:
            peer.close()
        self._peers = []

    def _accept(self, limit, timeout_s):
        peers = {}
        while len(peers) < self._ranks.world - 1:
            self._listener.settimeout(max(0.001, limit - time.monotonic()))
            peer, _ = self._listener.accept()
            peer.settimeout(timeout_s)
            rank, number = struct.unpack("<qq", _receive(peer, 16))
            if number == self._number:
                peers[rank] = peer
            else:  # of a case that this rank has left behind
                peer.close()
        self._peers = [peers[rank] for rank in sorted(peers)]

    def _connect(self, limit, timeout_s):
        while True:
            try:
                peer = socket.create_connection((self._ranks.master_addr, self._ranks.master_port), timeout=timeout_s)
                break
            except ConnectionRefusedError:  # rank 0 is not there yet
                if time.monotonic() > limit:
                    raise
                time.sleep(0.01)
        peer.sendall(struct.pack("<qq", self._ranks.rank, self._number))
        return peer

    def all_reduce(self, values):
        """The sum over ranks, elementwise, in the order of ranks; of the same shape and type on all."""
        values = numpy.ascontiguousarray(values)
        if not self._listener:
            for peer in self._peers:  # none where there is one rank
                peer.sendall(values.tobytes())
                return numpy.frombuffer(_receive(peer, values.nbytes), values.dtype).reshape(values.shape)
            return values
        total = values.copy()
        for peer in self._peers:
            total += numpy.frombuffer(_receive(peer, values.nbytes), values.dtype).reshape(values.shape)
        for peer in self._peers:
            peer.sendall(total.tobytes())
        return total
