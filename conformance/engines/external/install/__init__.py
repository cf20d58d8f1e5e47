# SPDX-License-Identifier: Apache-2.0
"""`plumbline engine install`: foreign engines in folders of their own; install/main.py is the program."""
