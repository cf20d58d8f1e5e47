// SPDX-License-Identifier: Apache-2.0
// The NVIDIA library of a machine on which the driver itself is not loaded.

extern "C" int nvmlInit_v2() {
  constexpr int kDriverNotLoaded = 9;
  return kDriverNotLoaded;
}
