# SPDX-License-Identifier: Apache-2.0
"""Which of the ranks this process is, from the plain variables that torchrun, srun scripts and the harness set."""
import os
import typing


class Ranks(typing.NamedTuple):
    rank: int = 0
    local_rank: int = 0
    world: int = 1
    master_addr: str = "127.0.0.1"
    master_port: int = 0  # 0: not given

    @staticmethod
    def from_environment(environment=None):
        """Read once, at the start. Without RANK there is one rank."""
        environment = os.environ if environment is None else environment

        def number(name, default, low, high):
            text = environment.get(name, str(default))
            if not text.isdecimal() or not low <= int(text) < high:
                raise ValueError("%s is %r; allowed: an integer from %d to %d" % (name, text, low, high - 1))
            return int(text)
        world = number("WORLD_SIZE", 1, 1, 2**31)
        rank = number("RANK", 0, 0, world)
        return Ranks(rank, number("LOCAL_RANK", rank, 0, world), world, environment.get("MASTER_ADDR", "127.0.0.1"),
                     number("MASTER_PORT", 0, 0, 2**16))
