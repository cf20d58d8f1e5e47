// SPDX-License-Identifier: Apache-2.0
// A stand-in for the driver's library with two GPUs: the first tells all, the second is lost (no function answers for
// it).
#include <cstdio>

namespace {

constexpr int kSuccess = 0;
constexpr int kLost = 15;

struct Memory {
  unsigned long long total, free, used;
};

int first = 0;
int second = 0;

int Answer(const void* device) { return device == &first ? kSuccess : kLost; }

}  // namespace

extern "C" {

int nvmlInit_v2() { return kSuccess; }
int nvmlShutdown() { return kSuccess; }

int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::snprintf(text, bytes, "580.65.06");
  return kSuccess;
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return kSuccess;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = index == 0 ? &first : &second;
  return kSuccess;
}

int nvmlDeviceGetName(void* device, char* text, unsigned bytes) {
  std::snprintf(text, bytes, "Fake H1");
  return Answer(device);
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  *memory = {1ull << 37, 1, 2};
  return Answer(device);
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return Answer(device);
}

int nvmlDeviceGetPersistenceMode(void* device, int* state) {
  *state = 1;
  return Answer(device);
}

int nvmlDeviceGetEccMode(void* device, int* current, int* pending) {
  *current = 0;
  *pending = 1;
  return Answer(device);
}

int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 345 : 0;
  return Answer(device);
}

int nvmlDeviceGetMaxClockInfo(void* device, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 1980 : 0;
  return Answer(device);
}
// nvmlDeviceGetMigMode is left out, as in the libraries of old drivers.

}  // extern "C"
