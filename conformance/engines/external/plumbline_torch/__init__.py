# SPDX-License-Identifier: Apache-2.0
"""What the adapters of PyTorch's engines share: models, optimizers, schedules and clipping as a user of PyTorch writes
them, from docs/semantics.md and docs/exact-family.md and from no engine of ours.

Importing a module of it imports torch, but for packages.py, which says where torch is found. Nothing of Plumbline's
protocol is in here; that is plumbline_engine's.
"""
