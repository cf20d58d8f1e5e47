# SPDX-License-Identifier: Apache-2.0
"""Where the processes of an adapter join each other, for main(…, connect=connect)."""
from torch import distributed


def connect(ranks):
    store = distributed.TCPStore(ranks.master_addr, ranks.master_port, ranks.world, ranks.rank == 0)
    distributed.init_process_group("gloo", store=store, rank=ranks.rank, world_size=ranks.world)
