# SPDX-License-Identifier: Apache-2.0
"""How kernels are compiled for the CPU.

-O3 vectorises loops of unknown length. -fno-trapping-math lets it turn a conditional addition into a select (nobody here
reads floating-point exception flags); it changes no value. Measured: the fold's loop goes from 2.7 to 1.1 us at 2304 floats.
"""

KERNEL_COPTS = ["-O3", "-fno-trapping-math"]

# For kernels that take many roots. Nobody reads errno of one; without it roots are taken several at a time. It changes no
# value. Measured: an element of LAMB's update goes from 12.4 to 4.0 ns.
ROOT_KERNEL_COPTS = KERNEL_COPTS + ["-fno-math-errno"]
