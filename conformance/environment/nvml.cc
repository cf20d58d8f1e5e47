// SPDX-License-Identifier: Apache-2.0
// The few declarations needed are written out here (source: NVML API reference, "Device Queries"), so that no CUDA
// header is needed to build this.
#include "conformance/environment/nvml.h"

#include <dlfcn.h>

#include <memory>

#include "conformance/environment/machine_text.h"

namespace plumbline::conformance {
namespace {

constexpr unsigned kTextBytes = 96;              // NVML_DEVICE_NAME_V2_BUFFER_SIZE; versions need 80
constexpr unsigned kClockOfMultiprocessors = 1;  // NVML_CLOCK_SM

using Device = void*;
struct Memory {
  unsigned long long total, free, used;
};

class Library {
 public:
  explicit Library(const std::string& name) : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  bool loaded() const { return handle_ != nullptr; }

  // Calls the function; whether it exists in this version of the library and succeeded. All return an int, 0 = success.
  template <class... Arguments>
  bool Call(const char* function, Arguments... arguments) const {
    void* const symbol = dlsym(handle_, function);
    return symbol != nullptr && reinterpret_cast<int (*)(Arguments...)>(symbol)(arguments...) == 0;
  }

 private:
  void* handle_;
};

// A mode with a current and a pending state; `more` is the place of the pending one where the function has it.
template <class... More>
std::optional<bool> AskMode(const Library& nvml, const char* function, Device device, More... more) {
  unsigned state = 0;
  if (!nvml.Call(function, device, &state, more...)) return std::nullopt;
  return state != 0;
}

Gpu AskGpu(const Library& nvml, Device device) {
  Gpu gpu;
  char name[kTextBytes] = {};
  if (nvml.Call("nvmlDeviceGetName", device, &name[0], kTextBytes)) gpu.name = name;
  Memory memory{};
  if (nvml.Call("nvmlDeviceGetMemoryInfo", device, &memory)) gpu.memory_bytes = memory.total;
  int major = 0;
  int minor = 0;
  if (nvml.Call("nvmlDeviceGetCudaComputeCapability", device, &major, &minor)) {
    gpu.compute_capability = std::to_string(major) + "." + std::to_string(minor);
  }
  unsigned pending = 0;
  gpu.mig = AskMode(nvml, "nvmlDeviceGetMigMode", device, &pending);
  gpu.persistence = AskMode(nvml, "nvmlDeviceGetPersistenceMode", device);
  gpu.ecc = AskMode(nvml, "nvmlDeviceGetEccMode", device, &pending);
  unsigned mhz = 0;
  if (nvml.Call("nvmlDeviceGetClockInfo", device, kClockOfMultiprocessors, &mhz)) gpu.clock_mhz = mhz;
  if (nvml.Call("nvmlDeviceGetMaxClockInfo", device, kClockOfMultiprocessors, &mhz)) gpu.clock_max_mhz = mhz;
  return gpu;
}

}  // namespace

GpuDriver AskGpuDriver(const std::string& library) {
  GpuDriver driver;
  const Library nvml(library);
  if (!nvml.loaded()) {
    driver.absent = library + " cannot be loaded";
    return driver;
  }
  if (!nvml.Call("nvmlInit_v2")) {
    driver.absent = library + " is there, but the driver does not answer";
    return driver;
  }
  const std::unique_ptr<const Library, void (*)(const Library*)> shutdown(
      &nvml, [](const Library* started) { started->Call("nvmlShutdown"); });
  char version[kTextBytes] = {};
  if (nvml.Call("nvmlSystemGetDriverVersion", &version[0], kTextBytes)) driver.version = version;
  int cuda = 0;
  if (nvml.Call("nvmlSystemGetCudaDriverVersion_v2", &cuda)) driver.cuda_version = CudaVersion(cuda);
  unsigned count = 0;
  if (!nvml.Call("nvmlDeviceGetCount_v2", &count)) count = 0;
  for (unsigned index = 0; index < count; ++index) {
    Device device = nullptr;
    const bool found = nvml.Call("nvmlDeviceGetHandleByIndex_v2", index, &device);
    driver.gpus.push_back(found ? AskGpu(nvml, device) : Gpu{});
  }
  return driver;
}

}  // namespace plumbline::conformance
